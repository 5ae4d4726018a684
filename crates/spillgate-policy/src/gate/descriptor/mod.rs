//! The whole decision about the descriptors of a call.

mod outcome;
mod quota_mode;
mod spend;

use self::spend::Refunds;
use super::{Gate, at_once};
use crate::store::{Spend, Store};
use crate::{Descriptor, Error};

pub use self::outcome::{DescriptorKind, DescriptorOutcome, DescriptorState};

impl<S: Store> Gate<S> {
    /// Decides about the descriptors of a call, and spends what they cost if it passes.
    ///
    /// All of them spend, or, if any limit that enforces denies, none does; those beside the
    /// one that is denied say what is left, unless the store has denied without asking for it.
    /// Hits are given back only if the call passes. Limits in [quota mode](crate::NodeMode::Quota)
    /// deny a call together, and count also what exceeds them.
    ///
    /// ```
    /// use spillgate_policy::{Descriptor, Gate, Limit, Policy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limit = Limit::new("per-address", "1/h").domain("edge").descriptor("remote_address", "*");
    /// let gate = Gate::new(Policy::builder().limit(limit).build()?)?;
    ///
    /// let entries = [("remote_address", "203.0.113.7")];
    /// let descriptors = [Descriptor::new(&entries)];
    /// assert!(gate.check_descriptors("edge", &descriptors).await?.is_allowed());
    ///
    /// let outcome = gate.check_descriptors("edge", &descriptors).await?;
    /// assert!(!outcome.is_allowed());
    /// let denied = outcome.descriptors().next().and_then(|state| state.nearest());
    /// assert_eq!(denied.map(|limit| limit.name()), Some("per-address"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the store could not answer: then nothing is spent, but if it could not give hits
    /// back, the rest of the call stands. If a quota came with the call that never refills, or
    /// that the policy [keeps no room for](crate::PolicyBuilder::call_quotas).
    pub async fn check_descriptors(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Result<DescriptorOutcome<'static>, Error> {
        let active = self.active();
        let (mut outcome, refunds) = DescriptorOutcome::of(&active.policy, domain, descriptors)?;
        self.decide(&active.limits, &mut outcome.outcome).await?;
        self.apply_quota_mode(&active.limits, &mut outcome, &refunds).await;
        self.give_back(&active.limits, &mut outcome, refunds).await?;
        Ok(outcome.take())
    }

    /// [Decides](Self::check_descriptors) about the descriptors of a call at once, if the store
    /// can: one in memory always does. If it cannot, nothing has happened.
    pub fn check_descriptors_now(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Option<Result<DescriptorOutcome<'static>, Error>> {
        let active = self.active();
        let of = DescriptorOutcome::of(&active.policy, domain, descriptors);
        let (mut outcome, refunds) = match of {
            Ok(of) => of,
            Err(error) => return Some(Err(error)),
        };
        let asks_again = !refunds.is_empty() || outcome.has_quota_mode();
        if asks_again && !self.store.is_in_process() {
            return None;
        }
        let decided = self.store.decide_now(&active.limits, &mut outcome.outcome.spends)?;
        if let Err(error) = outcome.outcome.conclude(decided) {
            return Some(Err(error));
        }
        at_once(self.apply_quota_mode(&active.limits, &mut outcome, &refunds))?;
        let given = at_once(self.give_back(&active.limits, &mut outcome, refunds))?;
        Some(given.map(|()| outcome.take()))
    }

    /// Gives back what a call gives back, if it passes, and tells what there is.
    async fn give_back(
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
                    outcome.outcome.shadow_error = Some(error);
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
