//! Limits in quota mode: they count also what is beyond them, and deny a call together.

use std::sync::Arc;

use spillgate::{AlgorithmKind, Decision};

use super::charge::Refunds;
use super::{DescriptorOutcome, Gate};
use crate::gate::Answer;
use crate::policy::Rule;
use crate::spec::NodeMode;
use crate::store::{Charge, Store};
use crate::{Error, Policy};

impl<S: Store> Gate<S> {
    /// Counts what exceeds limits in quota mode, and denies a call that exceeds all of them: then
    /// what it has spent under others is given back.
    pub(super) async fn apply_quota_mode(
        &self,
        limits: &S::Limits,
        outcome: &mut DescriptorOutcome<'_>,
        refunds: &Refunds,
    ) {
        if !outcome.is_allowed() || !outcome.has_quota_mode() {
            return;
        }
        let policy = Arc::clone(outcome.outcome.policy());
        let mode = |charge: &Charge| mode(&policy, charge);
        let is_quota = |charge: &Charge| mode(charge) == NodeMode::Quota;
        let charges = &mut outcome.outcome.charges;
        let mut failed = None;
        for charge in charges.iter_mut().filter(|charge| is_quota(charge)) {
            let rule = &policy.rules[charge.limit];
            failed = self.count_beyond(limits, rule, charge).await.err().or(failed);
        }
        // Neither what gives back nor what is in shadow exceeds anything.
        let within = |charge: &Charge| match mode(charge) {
            NodeMode::Quota => !charge.is_denied(),
            NodeMode::ShadowQuota => true,
            NodeMode::Enforce | NodeMode::Shadow => false,
        };
        let gives_back = |charge: &Charge| mode(charge).is_quota();
        if !charges.iter().any(within) && !refunds.iter().any(|(_, charge)| gives_back(charge)) {
            for charge in charges.iter_mut() {
                if is_quota(charge) {
                    charge.is_shadow = false;
                } else {
                    failed = self.take_back(limits, charge).await.err().or(failed);
                }
            }
            outcome.outcome.answer = Answer::Denied;
        }
        // What could not be counted or given back does not change the answer.
        if failed.is_some() {
            outcome.outcome.shadow_error = failed;
        }
    }

    /// Has a charge count also if it exceeds its limit. One that only looks exceeds what is used
    /// up.
    async fn count_beyond(
        &self,
        limits: &S::Limits,
        rule: &Rule,
        charge: &mut Charge,
    ) -> Result<(), Error> {
        let Some(decision) = &charge.decision else { return Ok(()) };
        let (is_used_up, is_closed) = (is_used_up(rule, decision), rule.is_closed());
        if charge.cost == 0 && is_used_up {
            let hit = Charge { cost: 1, decision: None, ..charge.clone() };
            charge.decision = Some(self.store.peek(limits, &hit).await?);
        } else if decision.is_denied() && !is_used_up && !is_closed {
            let uncounted = Charge { cost: 0, decision: None, ..charge.clone() };
            self.store.settle(limits, &uncounted, charge.cost).await?;
            charge.decision = Some(self.store.peek(limits, charge).await?);
        }
        Ok(())
    }

    /// Gives back what a charge has spent. One in shadow is undecided then, as in every call that
    /// is denied.
    async fn take_back(&self, limits: &S::Limits, charge: &mut Charge) -> Result<(), Error> {
        let settled = match charge.spent() {
            0 => Ok(None),
            _ => self.store.settle(limits, charge, 0).await.map(|settled| Some(settled.left)),
        };
        if charge.is_shadow {
            charge.decision = None;
        }
        if let Some(left) = settled?.filter(|_| !charge.is_shadow) {
            charge.settled(0, left);
        }
        Ok(())
    }
}

impl DescriptorOutcome<'_> {
    /// True if the call meets a limit in quota mode.
    pub(super) fn has_quota_mode(&self) -> bool {
        let policy = self.outcome.policy();
        self.outcome.charges.iter().any(|charge| mode(policy, charge) == NodeMode::Quota)
    }
}

fn mode(policy: &Policy, charge: &Charge) -> NodeMode {
    policy.rules[charge.limit].scope.as_ref().map_or(NodeMode::Enforce, |scope| scope.mode)
}

/// True if there is no need to count more. The count of a window goes beyond its quota, and is
/// forgotten when it ends. A debt is not: only the first who exceeds what is left goes into it,
/// so that those who do not wait do not keep it from being refilled.
fn is_used_up(rule: &Rule, decision: &Decision) -> bool {
    match rule.spec.algorithm {
        AlgorithmKind::FixedWindow | AlgorithmKind::FirstHitWindow => {
            decision.owed() > decision.limit()
        }
        _ => decision.remaining() == 0,
    }
}
