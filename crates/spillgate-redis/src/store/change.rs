//! What is asked about one caller: looking, settling, resetting.

use std::cmp::Ordering;
use std::time::Duration;

use spillgate::algorithm::{Algorithm, Layout, SpendRecord, Word};
use spillgate::{Decision, Settled, Timestamp};

use super::core::{Caller, Core, TRIES, counted_by, unsettled};
use crate::State;
use crate::counted::{Counted, Whose};
use crate::engine::{Engine, EngineError, Entry, Fault, Found, Op};
use crate::sighting::Sighting;

/// What an operation found, and what it left.
struct Left {
    now: Timestamp,
    /// What the words are counted by.
    counted: Counted,
    /// The word of a caller that the engine does not know.
    fresh: Word,
    found: Word,
    word: Word,
}

/// What is left of a charge to be settled.
#[derive(Clone, Copy)]
enum Unused {
    /// Up to so much is given back.
    Any(u64),
    /// So much of this charge, but nothing that has been refilled since.
    Of(SpendRecord, u64),
}

/// How often, and after what time each, what could not be settled is tried again.
const SETTLE_TRIES: usize = 100;
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);

impl<E: Engine> Core<E> {
    /// What a call would be answered.
    pub(super) async fn peek(
        &self,
        mut caller: Caller,
        cost: u64,
    ) -> Result<Decision, EngineError> {
        self.report(caller.name).await?;
        for _ in 0..TRIES {
            let counted = *caller.counted();
            let (sent, fresh) = (self.local(), caller.fresh(&counted, &self.engine).await?);
            let Some((now, found)) = self.ask(&caller, &counted, fresh, Op::Look).await? else {
                break;
            };
            let word = match found {
                Found::Passed(word) | Found::Denied(word) => {
                    let seen = Sighting { sent, heard: self.local(), now };
                    self.words.tell(caller.name, &counted, word, seen, false);
                    word
                }
                Found::Other(stored) => {
                    self.learn(&mut caller, &stored, sent)?;
                    caller.translated(&stored, caller.counted(), now)?.word
                }
                Found::Gone => {
                    self.unlearn(&mut caller, sent);
                    continue;
                }
            };
            return Ok(Decision::peek(caller.counted().algorithm, word, now, cost));
        }
        Err(unsettled(&caller.limit))
    }

    /// Replaces what was spent in advance by the actual cost, and tells what there is then.
    /// Without its charge, nobody knows what has been refilled since.
    pub(super) async fn settle(
        &self,
        mut caller: Caller,
        charged: Option<SpendRecord>,
        reserved: u64,
        actual: u64,
    ) -> Result<Settled, EngineError> {
        self.report(caller.name).await?;
        let difference = actual.abs_diff(reserved);
        match (actual.cmp(&reserved), charged) {
            (Ordering::Greater, _) => self.debit(caller, difference).await,
            (Ordering::Equal, _) => {
                let left = self.apply(&mut caller, |_| Op::Look).await?;
                Ok(left.settled(0))
            }
            (Ordering::Less, None) => self.give_back(caller, Unused::Any(difference)).await,
            (Ordering::Less, Some(charged)) => {
                self.give_back(caller, Unused::Of(charged, difference)).await
            }
        }
    }

    /// Settles a charge, once the engine is not asked too much any more.
    pub(super) async fn settle_when_it_can(
        &self,
        caller: Caller,
        charged: Option<SpendRecord>,
        reserved: u64,
        actual: u64,
    ) {
        for _ in 0..SETTLE_TRIES {
            tokio::time::sleep(SETTLE_INTERVAL).await;
            match self.settle(caller.clone(), charged, reserved, actual).await {
                Err(why) if why.fault() == Fault::Overloaded => {}
                _ => return,
            }
        }
    }

    /// Takes an amount whether or not it passes, up to the deepest debt.
    pub(super) async fn debit(
        &self,
        mut caller: Caller,
        amount: u64,
    ) -> Result<Settled, EngineError> {
        let max_debt = caller.limit.max_debt;
        let op =
            |counted: &Counted| Op::Debit { amount, most: counted.algorithm.most_owed(max_debt) };
        let left = self.apply(&mut caller, op).await?;
        Ok(left.settled(amount))
    }

    /// Gives back what was not used.
    async fn give_back(&self, mut caller: Caller, unused: Unused) -> Result<Settled, EngineError> {
        for _ in 0..TRIES {
            let mut is_settled = true;
            let op = |counted: &Counted| match unused {
                Unused::Any(amount) => Op::GiveBack { amount, charged: None },
                Unused::Of(charged, amount) if charged.algorithm == counted.algorithm => {
                    is_settled = true;
                    Op::GiveBack { amount, charged: Some(charged.word) }
                }
                // It was charged by something else: only this node can tell what to give back.
                Unused::Of(..) => {
                    is_settled = false;
                    Op::Look
                }
            };
            let mut left = self.apply(&mut caller, op).await?;
            if let (Unused::Of(charged, amount), false) = (unused, is_settled) {
                let algorithm = left.counted.algorithm.starting_from(left.fresh);
                let has_tiers = caller.limit.base.terms.is_tiered;
                left.word = charged.refund(&algorithm, left.found, left.now, amount, has_tiers);
                is_settled = self.replace(&caller, &left).await?;
            }
            if is_settled {
                return Ok(left.settled(0));
            }
        }
        Err(EngineError::new(
            Fault::Unready,
            format!("others spent {TRIES} times while a charge was to be settled"),
        ))
    }

    /// Puts the word that is to be left in place of the one that was found. Who is not known has
    /// nothing to get back.
    async fn replace(&self, caller: &Caller, left: &Left) -> Result<bool, EngineError> {
        if left.word == left.found || left.found == left.fresh {
            return Ok(true);
        }
        let words = [left.found, left.word];
        let exchange = self.exchange_of_words(caller.name, &left.counted, words, left.now);
        let is_replaced = self.engine.exchange(&exchange).await?;
        self.words.doubt(caller.name);
        Ok(is_replaced)
    }

    /// Makes a caller as if it had never been seen, also if what is kept of it cannot be read.
    pub(super) async fn reset(&self, mut caller: Caller) -> Result<(), EngineError> {
        match self.apply(&mut caller, |_| Op::Reset).await {
            Ok(_) => {}
            Err(why) if why.is_unreadable() => self.forget(&mut caller).await?,
            Err(why) => return Err(why),
        }
        self.words.forget(caller.name);
        self.unreported.forget(caller.name);
        Ok(())
    }

    /// Deletes what cannot be read of a caller, be it corrupt or of a later version, and of its
    /// limit.
    async fn forget(&self, caller: &mut Caller) -> Result<(), EngineError> {
        let sent = self.local();
        self.engine.forget(caller.name).await?;
        self.unlearn(caller, sent);
        match caller.limit.born(&self.engine).await {
            Err(why) if why.is_unreadable() => self.engine.forget(caller.limit.id()).await,
            born => born.map(drop),
        }
    }

    /// Cuts a word that denies for longer than anything can, if nobody can be in debt: the
    /// engine's clock has gone back since it was written. What is left is a caller that has
    /// spent all it has, and no more. Tells the word that is there.
    pub(super) async fn cut(&self, caller: &Caller, word: Word, now: Timestamp) -> Word {
        let counted = caller.counted();
        if !caller.limit.is_cut || !counted.is_impossible(word, now) {
            return word;
        }
        let algorithm = counted.algorithm;
        let cut =
            algorithm.debit_up_to(counted.fresh(None), now, algorithm.limit(), algorithm.limit());
        let exchange = self.exchange_of_words(caller.name, counted, [word, cut], now);
        // If that fails, the caller is denied all the same.
        let is_cut = self.engine.exchange(&exchange).await == Ok(true);
        self.counters.cut.add(is_cut.into());
        if is_cut { cut } else { word }
    }

    /// Takes a charge back, if nothing has been spent since.
    pub(super) async fn cancel(&self, caller: &Caller, charged: &SpendRecord) {
        let SpendRecord { algorithm, word, at, cost } = *charged;
        let counted = caller.counted();
        if counted.algorithm != algorithm {
            return;
        }
        let words = [word, algorithm.refund(word, at, cost)];
        let exchange = self.exchange_of_words(caller.name, counted, words, at);
        if self.engine.exchange(&exchange).await == Ok(true) {
            self.words.doubt(caller.name);
        }
    }

    /// All that the engine has of a caller, and when.
    pub(super) async fn read(
        &self,
        caller: &Caller,
    ) -> Result<(Timestamp, Option<State>), EngineError> {
        // By terms that are no override: where there is none, that is no matter.
        let counted = &caller.limit.base;
        match self.ask(caller, counted, counted.fresh(None), Op::Read).await? {
            Some((now, Found::Other(stored))) => Ok((now, Some(stored))),
            Some((now, _)) => Ok((now, None)),
            None => Err(unsettled(&caller.limit)),
        }
    }

    /// Carries out what passes in any case, by the terms that the engine has: there is nothing
    /// to be decided, so nothing has to be carried over.
    async fn apply(
        &self,
        caller: &mut Caller,
        mut op: impl FnMut(&Counted) -> Op,
    ) -> Result<Left, EngineError> {
        let mut counted = *caller.counted();
        for _ in 0..TRIES {
            let fresh = caller.fresh(&counted, &self.engine).await?;
            let (sent, op) = (self.local(), op(&counted));
            let Some((now, found)) = self.ask(caller, &counted, fresh, op).await? else { break };
            match found {
                Found::Passed(found) | Found::Denied(found) => {
                    let algorithm = counted.algorithm.starting_from(fresh);
                    let word = op.left(&algorithm, found, now);
                    let seen = Sighting { sent, heard: self.local(), now };
                    self.words.tell(caller.name, &counted, word, seen, false);
                    return Ok(Left { now, counted, fresh, found, word });
                }
                Found::Other(stored) => {
                    self.learn(caller, &stored, sent)?;
                    counted = caller.counted_by(&stored)?;
                }
                Found::Gone => {
                    self.unlearn(caller, sent);
                    counted = caller.own;
                }
            }
        }
        Err(unsettled(&caller.limit))
    }

    /// Asks about a caller alone.
    async fn ask(
        &self,
        caller: &Caller,
        counted: &Counted,
        fresh: Word,
        op: Op,
    ) -> Result<Option<(Timestamp, Found)>, EngineError> {
        let (terms, algorithm) = (counted.terms, counted.algorithm);
        let entry = Entry { name: caller.name, terms, algorithm, fresh, op };
        let reply = self.engine.run(&[entry]).await?;
        Ok(reply.answers.first().map(|found| (reply.now, *found)))
    }
}

impl Caller {
    /// What a stored state is counted by as long as it is not carried over. Of one that callers
    /// of all tiers have, the words of a bucket are times: there this caller's own tier counts.
    fn counted_by(&self, stored: &State) -> Result<Counted, EngineError> {
        let own = &self.own;
        let is_time = matches!(own.algorithm.layout(), Layout::Bucket { .. });
        if stored.terms.is_tiered && own.whose == Whose::Limit && is_time {
            return Ok(Counted { terms: stored.terms, ..*own });
        }
        counted_by(stored)
    }
}

impl Left {
    /// What there is when so much was to be charged.
    fn settled(&self, amount: u64) -> Settled {
        let Self { now, counted: Counted { algorithm, .. }, found, word, .. } = self;
        let uncharged = algorithm.uncharged(*found, *word, *now, amount);
        Settled { left: Decision::peek(*algorithm, *word, *now, 0), uncharged }
    }
}
