//! Deciding about all spends of a call together.

use smallvec::SmallVec;
use spillgate::{Decision, Timestamp};
use spillgate_policy::Error;
use spillgate_policy::store::Spend;

use super::RedisStore;
use super::ask::Asked;
use super::limits::{RedisLimits, unanswered};
use super::turns::Turns;
use crate::engine::{Engine, EngineError, Fault};

/// A call that is being decided.
pub(super) struct Call<'c> {
    pub(super) limits: &'c RedisLimits,
    pub(super) spends: &'c mut [Spend],
    /// What the engine is asked for: at first, everything.
    pub(super) asked: SmallVec<[Asked; 1]>,
    /// What was spent out of leases.
    pub(super) leased: Vec<(Asked, Decision)>,
    /// What is in shadow, and comes out of leases if the rest passes.
    pub(super) shadow: Vec<Asked>,
    /// What could not be asked for, and has to be decided without.
    pub(super) failed: Vec<Asked>,
    /// Why.
    pub(super) failure: Option<EngineError>,
}

impl Call<'_> {
    /// True if an answer did not come in time, or was waited for in vain: the call cannot wait for
    /// another one.
    pub(super) fn is_out_of_time(&self) -> bool {
        let is_late = |why: &EngineError| match why.fault() {
            Fault::TimedOut => why.is_unanswered(),
            fault => fault == Fault::Overloaded,
        };
        self.failure.as_ref().is_some_and(is_late)
    }
}

impl<E: Engine> RedisStore<E> {
    /// Decides about a call.
    pub(super) async fn decide_call(
        &self,
        limits: &RedisLimits,
        spends: &mut [Spend],
    ) -> Result<(), Error> {
        let local = self.core.local();
        let mut call = self.call(limits, spends, local);
        if self.deny_by_memory(&mut call, local) {
            return Ok(());
        }
        // What is seldom needed is in boxes: a call has room for all that it may wait for.
        let has_leases = call.asked.iter().any(|asked| asked.lease.is_some());
        let is_denied = (has_leases && !Box::pin(self.spend_leases(&mut call)).await)
            || !self.begin_to_ask(&mut call, local);
        if is_denied {
            self.undo_leases(&mut call);
            return Ok(());
        }
        let turns = Turns::order(&mut call.asked, &self.core.engine);
        let passes = self.enforce(&mut call, &turns).await
            && (call.failure.is_none() || Box::pin(self.pass_outage(&mut call)).await?);
        if !passes {
            self.undo_leases(&mut call);
            self.tell_denied(&mut call);
            return Ok(());
        }
        let has_shadow = !call.shadow.is_empty() || !turns.shadow.is_empty();
        let failure = match has_shadow {
            true => Box::pin(self.spend_shadow(&mut call, &turns)).await,
            false => None,
        };
        self.tell_passed(&mut call);
        // If there is nothing else to tell, it is told why.
        let is_shadow = |spend: &Spend| spend.is_shadow;
        let failure = failure.filter(|_| call.spends.iter().all(is_shadow));
        failure.map_or(Ok(()), |why| Err(unanswered(why)))
    }

    /// Denies a call by what this node knows, if it does.
    pub(super) fn deny_at_once(&self, limits: &RedisLimits, spends: &mut [Spend]) -> bool {
        let local = self.core.local();
        self.deny_by_memory(&mut self.call(limits, spends, local), local)
    }

    fn call<'c>(
        &self,
        limits: &'c RedisLimits,
        spends: &'c mut [Spend],
        local: Timestamp,
    ) -> Call<'c> {
        let asked = |(index, spend): (usize, &Spend)| {
            let limit = limits.limit(spend.limit);
            Asked {
                spend: index,
                turn: 0,
                lease: self.lease_of(limit, spend),
                caller: self.core.charged(limit, spend, local),
                cost: spend.cost,
                is_shadow: spend.is_shadow,
                in_flight: None,
                heard: None,
            }
        };
        let asked = spends.iter().enumerate().map(asked).collect();
        Call {
            limits,
            spends,
            asked,
            leased: Vec::new(),
            shadow: Vec::new(),
            failed: Vec::new(),
            failure: None,
        }
    }

    /// Denies a call if what is remembered says so, and tells whether it does.
    fn deny_by_memory(&self, call: &mut Call<'_>, local: Timestamp) -> bool {
        let enforced = || call.asked.iter().filter(|asked| !asked.is_shadow);
        let known = |asked: &Asked| self.known(asked, local);
        let is_denied = enforced().filter_map(known).any(|decision| decision.is_denied());
        if is_denied {
            self.core.counters.by_memory.add(1);
            for asked in enforced() {
                call.spends[asked.spend].decision = known(asked);
            }
        }
        is_denied
    }

    /// What this node knows about a spend.
    fn known(&self, asked: &Asked, local: Timestamp) -> Option<Decision> {
        let Asked { caller, cost, .. } = asked;
        let leased =
            asked.lease.and_then(|place| self.leases.peek(place, &caller.own, *cost, local));
        let words = &self.core.words;
        leased.or_else(|| words.look(caller.name, caller.counted(), *cost, local))
    }

    /// Notes that a call is about to ask, and tells whether it is: not if others are asking
    /// already for all there is.
    fn begin_to_ask(&self, call: &mut Call<'_>, local: Timestamp) -> bool {
        let words = &self.core.words;
        for index in 0..call.asked.len() {
            let Asked { caller, cost, is_shadow: false, .. } = &call.asked[index] else {
                continue;
            };
            match words.ask(caller.name, caller.counted(), *cost, local) {
                Ok(in_flight) => call.asked[index].in_flight = in_flight,
                Err(denied) => {
                    self.core.counters.by_memory.add(1);
                    call.spends[call.asked[index].spend].decision = Some(denied);
                    // Those before it do not ask after all.
                    call.asked[..index].iter().for_each(|asked| words.doubt(asked.caller.name));
                    return false;
                }
            }
        }
        true
    }

    /// Spends what enforces, and tells whether all of it passes as far as the engine could be
    /// asked. If it does not, nothing stays spent there.
    async fn enforce(&self, call: &mut Call<'_>, turns: &Turns) -> bool {
        for range in &turns.enforced {
            if call.is_out_of_time() {
                self.core.fail(&mut call.asked[range.start..]);
                break;
            }
            let together = &mut call.asked[range.clone()];
            match self.core.spend(together).await {
                Ok(true) => {}
                Ok(false) => {
                    Box::pin(self.core.undo(&call.asked[..range.start])).await;
                    return false;
                }
                Err(why) => {
                    self.core.fail(together);
                    call.failure = Some(why);
                }
            }
        }
        true
    }

    /// Spends what is in shadow and was not put along with the rest.
    async fn spend_shadow(&self, call: &mut Call<'_>, turns: &Turns) -> Option<EngineError> {
        if call.is_out_of_time() {
            return None;
        }
        let mut failure = self.spend_shadow_leases(call).await;
        for range in &turns.shadow {
            let together = &mut call.asked[range.clone()];
            if let Err(why) = self.core.spend(together).await {
                self.core.fail(together);
                failure = Some(why);
            }
        }
        failure
    }

    fn tell_denied(&self, call: &mut Call<'_>) {
        for asked in call.asked.iter().filter(|asked| !asked.is_shadow) {
            let Some(heard) = asked.heard else { continue };
            let caller = &asked.caller;
            self.core.words.tell(caller.name, caller.counted(), heard.word, heard.seen, true);
            self.core.counters.by_engine.add(1);
            call.spends[asked.spend].decision = asked.unspent();
        }
    }

    fn tell_passed(&self, call: &mut Call<'_>) {
        for asked in &call.asked {
            let Some(heard) = asked.heard else { continue };
            let caller = &asked.caller;
            let word = asked.spent().map_or(heard.word, |(_, spent)| spent);
            if !asked.is_shadow {
                self.core.words.tell(caller.name, caller.counted(), word, heard.seen, false);
            }
            self.core.counters.by_engine.add(1);
            call.spends[asked.spend].decision = asked.decision();
        }
    }
}
