//! The whole decision about the descriptors of a call.

mod explain;
mod outcome;
mod quota_mode;
mod spend;

pub(super) use self::spend::Refunds;
use super::Gate;
use crate::Error;
use crate::store::{Spend, Store};

pub use self::explain::{
    DescriptorExplanation, DescriptorLimitExplanation, DescriptorsExplanation,
};
pub use self::outcome::{DescriptorKind, DescriptorOutcome, DescriptorState};

impl<S: Store> Gate<S> {
    /// Refunds what a call gives back, if it is allowed, and adds the state to its outcome.
    pub(super) async fn give_back(
        &self,
        limits: &S::Limits,
        outcome: &mut DescriptorOutcome<'_>,
        refunds: Refunds,
    ) -> Result<(), Error> {
        let is_allowed = outcome.is_allowed();
        for (owner, refund) in refunds {
            let asked = if is_allowed {
                self.store.settle(limits, &refund, 0).await.map(|settled| settled.left)
            } else {
                self.store.peek(limits, &Spend { cost: 0, ..refund.clone() }).await
            };
            let mut spend = Spend { cost: 0, ..refund };
            spend.decision = match asked {
                Ok(decision) => Some(decision),
                Err(error) if spend.is_shadow => {
                    outcome.outcome.note_shadow_error(Some(error));
                    None
                }
                Err(_) if outcome.is_open(&spend) => None,
                Err(error) => return Err(error),
            };
            outcome.add(owner, spend);
        }
        outcome.sort();
        Ok(())
    }
}
