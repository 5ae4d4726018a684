//! Quotas that callers are given at run time.

use super::core::{Caller, Core, TRIES, unsettled};
use crate::State;
use crate::counted::Counted;
use crate::engine::{Engine, EngineError};

impl<E: Engine> Core<E> {
    /// Counts a caller by other terms, with what it has spent. Every node learns of them when
    /// it next asks for that caller.
    pub(super) async fn give(&self, caller: Caller, wanted: &Counted) -> Result<(), EngineError> {
        for _ in 0..TRIES {
            let (now, stored) = self.read(&caller).await?;
            let new = match &stored {
                Some(stored) => Some(caller.translated(stored, wanted, now)?),
                // Whom the engine does not know, it need not count by the policy's terms.
                None if !wanted.terms.is_override => None,
                None => Some(State::new(wanted.terms, caller.fresh(wanted, &self.engine).await?)),
            };
            let is_there = match new {
                Some(new) if stored != Some(new) => {
                    self.exchange(caller.name, stored, new, now).await?
                }
                _ => true,
            };
            if is_there {
                let given = wanted.terms.is_override.then_some(*wanted);
                self.given.learn(caller.name, given, self.local());
                self.words.doubt(caller.name);
                return Ok(());
            }
        }
        Err(unsettled(&caller.limit))
    }
}
