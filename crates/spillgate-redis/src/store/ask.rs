use std::sync::Arc;

use smallvec::SmallVec;
use spillgate::Decision;
use spillgate::algorithm::{Algorithm, Word};

use super::core::{Caller, Core, TRIES, unsettled};
use super::stats::Counters;
use super::words::InFlight;
use crate::State;
use crate::engine::{Engine, EngineError, Entry, Exchange, Found, Op};
use crate::flow::inherit_client;
use crate::lease::Place;
use crate::sighting::Sighting;

/// A spend that is put to the engine.
pub(super) struct Asked {
    /// Its place among the spends of the call.
    pub(super) spend: usize,
    /// When it is put: spends of one turn are put together.
    pub(super) turn: usize,
    /// Where its lease is, if the limit is leased.
    pub(super) lease: Option<Place>,
    pub(super) caller: Caller,
    pub(super) cost: u64,
    pub(super) is_shadow: bool,
    /// While it is not answered.
    pub(super) in_flight: Option<InFlight>,
    /// What the engine answered.
    pub(super) heard: Option<Heard>,
}

/// The word that the engine has, before anything is spent, and whether the spend passes.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    pub(super) seen: Sighting,
    pub(super) word: Word,
    pub(super) passes: bool,
    /// If the engine has it under other terms, so that nothing was written: what is to be there.
    other: Option<State>,
}

impl<E: Engine> Core<E> {
    /// Spends all of what is asked at one moment, or nothing if one that enforces is denied.
    /// Tells which.
    ///
    /// States under other terms are carried over first, but only to be spent: to write one
    /// that is denied could cut it to a smaller quota. Two nodes with different quotas, as
    /// there are while a policy is rolled out, would then forgive by turns. One in shadow that
    /// is denied so is not asked for again.
    pub(super) async fn spend(&self, asked: &mut [Asked]) -> Result<bool, EngineError> {
        for asked in &*asked {
            self.report(asked.caller.name).await?;
        }
        for _ in 0..TRIES {
            let mut asked: SmallVec<[&mut Asked; 2]> =
                asked.iter_mut().filter(|asked| !asked.is_left_as_it_is()).collect();
            let mut entries: SmallVec<[Entry; 1]> = SmallVec::new();
            for asked in &asked {
                entries.push(asked.entry(&self.engine).await?);
            }
            if entries.is_empty() {
                return Ok(true);
            }
            let sent = self.local();
            let reply = self.engine.run(&entries).await?;
            let seen = Sighting { sent, heard: self.local(), now: reply.now };
            let mut is_other = false;
            for (asked, found) in asked.iter_mut().zip(&reply.answers) {
                self.hear(asked, found, seen)?;
                is_other |= matches!(found, Found::Other(_) | Found::Gone);
            }
            if asked.iter().any(|asked| asked.refuses()) {
                for asked in asked.iter_mut().filter(|asked| asked.refuses()) {
                    let Some(heard) = asked.heard.as_mut() else { continue };
                    if heard.other.is_none() && asked.caller.limit.is_cut {
                        heard.word = Box::pin(self.cut(&asked.caller, heard.word, seen.now)).await;
                    }
                }
                return Ok(false);
            }
            if !is_other {
                return Ok(true);
            }
            for (asked, found) in asked.iter().zip(&reply.answers) {
                let other = asked.heard.and_then(|heard| heard.other);
                if let (Found::Other(stored), Some(other), false) =
                    (found, other, asked.is_left_as_it_is())
                {
                    Box::pin(self.bring_over(&asked.caller, stored, &other, reply.now)).await?;
                }
            }
        }
        asked.first().map_or(Ok(true), |asked| Err(unsettled(&asked.caller.limit)))
    }

    /// Takes an answer in. One under other terms is what it will be under the caller's own.
    fn hear(&self, asked: &mut Asked, found: &Found, seen: Sighting) -> Result<(), EngineError> {
        let caller = &mut asked.caller;
        let (word, passes, other) = match found {
            Found::Passed(word) => (*word, true, None),
            Found::Denied(word) => (*word, false, None),
            Found::Other(stored) => {
                self.learn(caller, stored, seen.sent)?;
                let other = caller.translated(stored, caller.counted(), seen.now)?;
                let algorithm = caller.counted().algorithm;
                let passes = algorithm.spend(other.word, seen.now, asked.cost).is_some();
                (other.word, passes, Some(other))
            }
            Found::Gone => {
                self.unlearn(caller, seen.sent);
                asked.heard = None;
                return Ok(());
            }
        };
        self.confirm(caller, seen.sent);
        asked.heard = Some(Heard { seen, word, passes, other });
        Ok(())
    }

    /// Forgets what was heard, and what is remembered, of spends about which nobody knows.
    pub(super) fn fail(&self, asked: &mut [Asked]) {
        for asked in asked {
            (asked.heard, asked.in_flight) = (None, None);
            self.words.doubt(asked.caller.name);
        }
    }

    /// Takes back what was spent, if nobody has spent since.
    pub(super) async fn undo(&self, asked: &[Asked]) {
        self.put_back(self.written(asked)).await;
    }

    /// The same, but does not wait for it.
    pub(super) fn undo_later(self: &Arc<Self>, asked: &[Asked]) {
        let (core, written) = (Arc::clone(self), self.written(asked));
        if !written.is_empty() {
            tokio::spawn(inherit_client(async move { core.put_back(written).await }));
        }
    }

    /// What puts back what was there before. The last one comes first, so that two on one
    /// caller come apart.
    fn written(&self, asked: &[Asked]) -> SmallVec<[Exchange; 1]> {
        let exchange = |asked: &Asked| {
            let (heard, spent) = asked.spent()?;
            let (name, counted) = (asked.caller.name, asked.caller.counted());
            Some(self.exchange_of_words(name, counted, [spent, heard.word], heard.seen.now))
        };
        asked.iter().rev().filter_map(exchange).collect()
    }

    async fn put_back(&self, written: SmallVec<[Exchange; 1]>) {
        let Counters { undone, kept_charges, .. } = &self.counters;
        for exchange in &written {
            let is_undone = self.engine.exchange(exchange).await == Ok(true);
            if is_undone { undone } else { kept_charges }.add(1);
        }
    }
}

impl Asked {
    /// A spend of a call that has no other.
    pub(super) fn alone(caller: Caller, cost: u64) -> Self {
        Self {
            spend: 0,
            turn: 0,
            lease: None,
            caller,
            cost,
            is_shadow: false,
            in_flight: None,
            heard: None,
        }
    }

    async fn entry<E: Engine>(&self, engine: &E) -> Result<Entry, EngineError> {
        let Self { caller, cost, is_shadow, .. } = self;
        let counted = caller.counted();
        Ok(Entry {
            name: caller.name,
            terms: counted.terms,
            algorithm: counted.algorithm,
            fresh: caller.fresh(counted, engine).await?,
            op: Op::Spend { cost: *cost, is_shadow: *is_shadow },
        })
    }

    /// True if the call is denied by this.
    pub(super) fn refuses(&self) -> bool {
        !self.is_shadow && self.heard.is_some_and(|heard| !heard.passes)
    }

    /// True if it is denied without being carried over.
    fn is_left_as_it_is(&self) -> bool {
        self.is_shadow && self.heard.is_some_and(|heard| heard.other.is_some() && !heard.passes)
    }

    /// What was decided, if what passes has been spent.
    pub(super) fn decision(&self) -> Option<Decision> {
        let Heard { seen, word, .. } = self.heard?;
        Some(Decision::of(self.caller.counted().algorithm, word, seen.now, self.cost).0)
    }

    /// What was decided, if nothing was spent.
    pub(super) fn unspent(&self) -> Option<Decision> {
        let Heard { seen, word, .. } = self.heard?;
        Some(Decision::peek(self.caller.counted().algorithm, word, seen.now, self.cost))
    }

    /// The word that was left, if it is another.
    pub(super) fn spent(&self) -> Option<(Heard, Word)> {
        let heard = self.heard.filter(|heard| heard.passes && self.cost > 0)?;
        let algorithm = self.caller.counted().algorithm;
        Some((heard, algorithm.spend(heard.word, heard.seen.now, self.cost)?))
    }
}
