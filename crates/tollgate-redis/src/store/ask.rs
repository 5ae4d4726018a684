use smallvec::SmallVec;
use tollgate::algorithm::{Algorithm, Word};
use tollgate::{Decision, Timestamp};

use super::core::{Caller, Core, TRIES, unsettled};
use crate::State;
use crate::engine::{Engine, EngineError, Entry, Found, Op};
use crate::sighting::Sighting;

/// A charge that is put to the engine.
pub(super) struct Asked {
    /// Its place among the charges of the call.
    pub(super) charge: usize,
    /// When it is put: charges of one turn are put together.
    pub(super) turn: usize,
    pub(super) caller: Caller,
    pub(super) cost: u64,
    pub(super) is_shadow: bool,
    /// What the engine answered.
    pub(super) heard: Option<Heard>,
}

/// The word that the engine has, before anything is spent, and whether the charge passes.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    pub(super) seen: Sighting,
    pub(super) word: Word,
    pub(super) passes: bool,
}

/// What an answer under other terms asks for.
enum Again {
    /// To ask by the terms that were found.
    Adopted,
    /// To put this node's terms in place of those found, first.
    Carry { from: State, word: Word },
}

impl<E: Engine> Core<E> {
    /// Spends all of what is asked at one moment, or nothing if one that enforces is denied.
    /// Tells which.
    ///
    /// States under other terms are carried over first, but only to be spent: to write one
    /// that is denied could cut it to a smaller quota. Two nodes with different quotas, as
    /// there are while a policy is rolled out, would then forgive by turns.
    pub(super) async fn spend(&self, asked: &mut [Asked]) -> Result<bool, EngineError> {
        for _ in 0..TRIES {
            let mut entries: SmallVec<[Entry; 2]> = SmallVec::new();
            for asked in &*asked {
                entries.push(asked.entry(&self.engine).await?);
            }
            let sent = self.local();
            let reply = self.engine.run(&entries).await?;
            let seen = Sighting { sent, now: reply.now };
            let mut again: SmallVec<[(usize, Again); 2]> = SmallVec::new();
            for (index, (asked, found)) in asked.iter_mut().zip(&reply.answers).enumerate() {
                again.extend(self.hear(asked, found, seen)?.map(|again| (index, again)));
            }
            if asked.iter().any(Asked::refuses) {
                return Ok(false);
            }
            if again.is_empty() {
                return Ok(true);
            }
            for (index, again) in again {
                self.prepare(&asked[index], again, reply.now).await?;
            }
        }
        asked.first().map_or(Ok(true), |asked| Err(unsettled(&asked.caller.limit)))
    }

    /// Takes an answer in. Says what to do before the charge is asked for again, if its terms
    /// are others.
    fn hear(
        &self,
        asked: &mut Asked,
        found: &Found,
        seen: Sighting,
    ) -> Result<Option<Again>, EngineError> {
        let caller = &mut asked.caller;
        let (word, passes, again) = match found {
            Found::Passed(word) => (*word, true, None),
            Found::Denied(word) => (*word, false, None),
            Found::Other(stored) => {
                self.learn(caller, stored, seen.sent)?;
                let word = caller.carry_over(stored, seen.now)?;
                let counted = caller.counted();
                let passes = counted.algorithm.spend(word, seen.now, asked.cost).is_some();
                let is_adopted = counted.terms == stored.terms;
                let carry = Again::Carry { from: *stored, word };
                (word, passes, Some(if is_adopted { Again::Adopted } else { carry }))
            }
        };
        if again.is_none() {
            self.confirm(caller, seen.sent);
        }
        asked.heard = Some(Heard { seen, word, passes });
        Ok(again)
    }

    async fn prepare(
        &self,
        asked: &Asked,
        again: Again,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if let Again::Carry { from, word } = again {
            let Caller { name, .. } = asked.caller;
            // If it has changed meanwhile, the next answer tells.
            if self.exchange(name, Some(from), (asked.caller.counted(), word), now).await? {
                self.counters.carried_over.add(1);
            }
        }
        Ok(())
    }

    /// Forgets what was heard, and what is remembered, of charges about which nobody knows.
    pub(super) fn fail(&self, asked: &mut [Asked]) {
        for asked in asked {
            asked.heard = None;
            self.denials.forget(asked.caller.name);
        }
    }

    /// Takes back what was spent, if nobody has spent since. The last one comes first, so
    /// that two on one caller come apart.
    pub(super) async fn undo(&self, asked: &[Asked]) {
        for asked in asked.iter().rev() {
            let Some((heard, spent)) = asked.spent() else { continue };
            let counted = asked.caller.counted();
            let (old, new) = (counted.state(spent), (counted, heard.word));
            let is_undone = self.exchange(asked.caller.name, Some(old), new, heard.seen.now).await;
            let counters = &self.counters;
            let counter = if is_undone == Ok(true) { &counters.undone } else { &counters.kept_charges };
            counter.add(1);
        }
    }
}

impl Asked {
    async fn entry<E: Engine>(&self, engine: &E) -> Result<Entry, EngineError> {
        let Self { caller, cost, is_shadow, .. } = self;
        let counted = caller.counted();
        Ok(Entry {
            name: caller.name,
            terms: counted.terms,
            fresh: caller.fresh(counted, engine).await?,
            op: Op::Spend { cost: *cost, is_shadow: *is_shadow },
        })
    }

    /// True if the call is denied by this.
    pub(super) fn refuses(&self) -> bool {
        !self.is_shadow && self.heard.is_some_and(|heard| !heard.passes)
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
