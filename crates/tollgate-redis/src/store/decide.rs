use smallvec::SmallVec;
use tollgate::Timestamp;
use tollgate_policy::Error;
use tollgate_policy::store::Charge;

use super::RedisStore;
use super::ask::Asked;
use super::limits::RedisLimits;
use super::turns::Turns;
use crate::engine::{Engine, EngineError};

/// What is asked for one call.
pub(super) type Call = SmallVec<[Asked; 2]>;

/// What became of the charges that enforce.
enum Enforced {
    /// All were spent, as far as the engine could be asked.
    Passed(Option<EngineError>),
    /// One was denied, and nothing stays spent.
    Denied,
}

impl<E: Engine> RedisStore<E> {
    /// Decides about all charges of a call.
    pub(super) async fn decide_call(
        &self,
        limits: &RedisLimits,
        charges: &mut [Charge],
    ) -> Result<(), Error> {
        let local = self.core.local();
        let mut call = self.call(limits, charges, local);
        if self.deny_by_memory(&call, charges, local) || !self.begin_to_ask(&call, charges, local) {
            return Ok(());
        }
        let turns = Turns::order(&mut call, &self.core.engine);
        match self.enforce(&mut call, &turns).await {
            Enforced::Denied => {
                self.tell_denied(&call, charges);
                return Ok(());
            }
            Enforced::Passed(None) => {}
            Enforced::Passed(Some(why)) => {
                if !self.pass_outage(limits, &call, charges, why).await? {
                    self.tell_denied(&call, charges);
                    return Ok(());
                }
            }
        }
        let failure = self.spend_shadow(&mut call, &turns).await;
        self.tell_passed(&call, charges);
        // If there is nothing else to tell, it is told why.
        failure.filter(|_| turns.enforced.is_empty()).map_or(Ok(()), |why| Err(Error::store(why)))
    }

    /// Denies a call by the words that are remembered, if they say so.
    pub(super) fn deny_at_once(&self, limits: &RedisLimits, charges: &mut [Charge]) -> bool {
        let local = self.core.local();
        self.deny_by_memory(&self.call(limits, charges, local), charges, local)
    }

    fn call(&self, limits: &RedisLimits, charges: &[Charge], local: Timestamp) -> Call {
        let asked = |(index, charge): (usize, &Charge)| Asked {
            charge: index,
            turn: 0,
            caller: self.core.caller(limits.limit(charge.limit), &charge.key, local),
            cost: charge.cost,
            is_shadow: charge.is_shadow,
            heard: None,
        };
        charges.iter().enumerate().map(asked).collect()
    }

    fn deny_by_memory(&self, call: &Call, charges: &mut [Charge], local: Timestamp) -> bool {
        let known = |asked: &Asked| {
            let (caller, cost) = (&asked.caller, asked.cost);
            self.core.denials.look(caller.name, caller.counted(), cost, local)
        };
        let enforced = || call.iter().filter(|asked| !asked.is_shadow);
        let is_denied = enforced().filter_map(known).any(|decision| decision.is_denied());
        if is_denied {
            self.core.counters.by_memory.add(1);
            enforced().for_each(|asked| charges[asked.charge].decision = known(asked));
        }
        is_denied
    }

    /// Notes that a call is about to ask, unless others are asking for all there is.
    fn begin_to_ask(&self, call: &Call, charges: &mut [Charge], local: Timestamp) -> bool {
        let denials = &self.core.denials;
        for (index, asked) in call.iter().enumerate().filter(|(_, asked)| !asked.is_shadow) {
            let (caller, cost) = (&asked.caller, asked.cost);
            let denied = denials.ask(caller.name, caller.counted(), cost, local);
            if denied.is_some() {
                self.core.counters.by_memory.add(1);
                charges[asked.charge].decision = denied;
                // Those before it do not ask after all.
                call[..index].iter().for_each(|asked| denials.forget(asked.caller.name));
                return false;
            }
        }
        true
    }

    /// Spends what enforces, or nothing if any of it is denied.
    async fn enforce(&self, call: &mut Call, turns: &Turns) -> Enforced {
        let mut failure = None;
        for range in &turns.enforced {
            let together = &mut call[range.clone()];
            match self.core.spend(together).await {
                Ok(true) => {}
                Ok(false) => {
                    self.core.undo(&call[..range.start]).await;
                    return Enforced::Denied;
                }
                Err(why) => {
                    self.core.fail(together);
                    failure = Some(why);
                }
            }
        }
        Enforced::Passed(failure)
    }

    /// Spends what is in shadow and was not put along with the rest.
    async fn spend_shadow(&self, call: &mut Call, turns: &Turns) -> Option<EngineError> {
        let mut failure = None;
        for range in &turns.shadow {
            let together = &mut call[range.clone()];
            if let Err(why) = self.core.spend(together).await {
                self.core.fail(together);
                failure = Some(why);
            }
        }
        failure
    }

    fn tell_denied(&self, call: &Call, charges: &mut [Charge]) {
        for asked in call.iter().filter(|asked| !asked.is_shadow) {
            let Some(heard) = asked.heard else { continue };
            let caller = &asked.caller;
            self.core.denials.tell(caller.name, caller.counted(), heard.word, heard.seen, true);
            self.core.counters.by_engine.add(1);
            charges[asked.charge].decision = asked.unspent();
        }
    }

    fn tell_passed(&self, call: &Call, charges: &mut [Charge]) {
        for asked in call {
            let Some(heard) = asked.heard else { continue };
            let caller = &asked.caller;
            let word = asked.spent().map_or(heard.word, |(_, spent)| spent);
            if !asked.is_shadow {
                self.core.denials.tell(caller.name, caller.counted(), word, heard.seen, false);
            }
            self.core.counters.by_engine.add(1);
            charges[asked.charge].decision = asked.decision();
        }
    }
}
