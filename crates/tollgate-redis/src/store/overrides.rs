//! Quotas that callers are given at run time.

use tollgate::algorithm::Algorithm;

use super::change::Left;
use super::core::{Caller, Core, TRIES, unsettled};
use super::terms::Counted;
use crate::engine::{Engine, EngineError, Op};

impl<E: Engine> Core<E> {
    /// Counts a caller by other terms, with what it has spent. Every node learns of them when
    /// it next asks for that caller.
    pub(super) async fn give(
        &self,
        mut caller: Caller,
        wanted: &Counted,
    ) -> Result<(), EngineError> {
        for _ in 0..TRIES {
            let Left { now, counted, word } = self.apply(&mut caller, Op::Look).await?;
            // Whom the engine does not know, it need not count by the policy's terms.
            let is_there = counted.terms == wanted.terms && !wanted.terms.is_override;
            let carried = if counted.terms == wanted.terms {
                word
            } else {
                wanted.algorithm.carry_over(word, now, &counted.algorithm)
            };
            if is_there || self.replace(&caller, (&counted, word), (wanted, carried), now).await? {
                let given = wanted.terms.is_override.then_some(*wanted);
                self.given.learn(caller.name, given, self.local());
                self.denials.forget(caller.name);
                return Ok(());
            }
        }
        Err(unsettled(&caller.limit))
    }
}
