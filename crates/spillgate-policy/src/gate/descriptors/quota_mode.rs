//! Limits in quota mode: they count also what is beyond them, and deny a call together.

use std::sync::Arc;

use spillgate::{AlgorithmKind, Decision};

use super::spend::Refunds;
use super::{DescriptorOutcome, Gate};
use crate::config::spec::NodeMode;
use crate::gate::Answer;
use crate::policy::Rule;
use crate::store::{Spend, Store};
use crate::{Error, Policy};

impl<S: Store> Gate<S> {
    /// Counts what exceeds limits in quota mode, and denies a call that exceeds all of them: then
    /// what it has spent under others is given back.
    pub(in crate::gate) async fn apply_quota_mode(
        &self,
        limits: &S::Limits,
        outcome: &mut DescriptorOutcome<'_>,
        refunds: &Refunds,
    ) {
        if !outcome.is_allowed() || !outcome.has_quota_mode() {
            return;
        }
        let policy = Arc::clone(outcome.outcome.policy());
        let mode = |spend: &Spend| mode(&policy, spend);
        let is_quota = |spend: &Spend| mode(spend) == NodeMode::Quota;
        let spends = &mut outcome.outcome.spends;
        let mut failed = None;
        for spend in spends.iter_mut().filter(|spend| is_quota(spend)) {
            let rule = &policy.rules[spend.limit];
            failed = self.count_beyond(limits, rule, spend).await.err().or(failed);
        }
        // Neither what gives back nor what is in shadow exceeds anything.
        let within = |spend: &Spend| match mode(spend) {
            NodeMode::Quota => !spend.is_denied(),
            NodeMode::ShadowQuota => true,
            NodeMode::Enforce | NodeMode::Shadow => false,
        };
        let gives_back = |spend: &Spend| mode(spend).is_quota();
        if !spends.iter().any(within) && !refunds.iter().any(|(_, spend)| gives_back(spend)) {
            for spend in spends.iter_mut() {
                if is_quota(spend) {
                    spend.is_shadow = false;
                } else {
                    failed = self.take_back(limits, spend).await.err().or(failed);
                }
            }
            outcome.outcome.answer = Answer::Denied;
        }
        // What could not be counted or given back does not change the answer.
        outcome.outcome.note_shadow_error(failed);
    }

    /// Has a spend count also if it exceeds its limit. One that only looks exceeds what is used
    /// up.
    async fn count_beyond(
        &self,
        limits: &S::Limits,
        rule: &Rule,
        spend: &mut Spend,
    ) -> Result<(), Error> {
        let Some(decision) = &spend.decision else { return Ok(()) };
        let (is_used_up, is_closed) = (is_used_up(rule, decision), rule.is_closed());
        if spend.cost == 0 && is_used_up {
            let hit = Spend { cost: 1, decision: None, ..spend.clone() };
            spend.decision = Some(self.store.peek(limits, &hit).await?);
        } else if decision.is_denied() && !is_used_up && !is_closed {
            let uncounted = Spend { cost: 0, decision: None, ..spend.clone() };
            self.store.settle(limits, &uncounted, spend.cost).await?;
            spend.decision = Some(self.store.peek(limits, spend).await?);
        }
        Ok(())
    }

    /// Gives back what a spend has spent. One in shadow is undecided then, as in every call that
    /// is denied.
    async fn take_back(&self, limits: &S::Limits, spend: &mut Spend) -> Result<(), Error> {
        let settled = match spend.spent() {
            0 => Ok(None),
            _ => self.store.settle(limits, spend, 0).await.map(|settled| Some(settled.left)),
        };
        if spend.is_shadow {
            spend.decision = None;
        }
        if let Some(left) = settled?.filter(|_| !spend.is_shadow) {
            spend.settled(0, left);
        }
        Ok(())
    }
}

impl DescriptorOutcome<'_> {
    /// True if the call meets a limit in quota mode.
    pub(in crate::gate) fn has_quota_mode(&self) -> bool {
        let policy = self.outcome.policy();
        self.outcome.spends.iter().any(|spend| mode(policy, spend) == NodeMode::Quota)
    }
}

/// Whether the limit of a spend refuses.
pub(super) fn mode(policy: &Policy, spend: &Spend) -> NodeMode {
    policy.rules[spend.limit].scope.as_ref().map_or(NodeMode::Enforce, |scope| scope.mode)
}

/// True if there is no need to count more. The count of a window goes beyond its quota, and is
/// forgotten when it ends. A debt is not: only the first who exceeds what is left goes into it,
/// so that those who do not wait do not keep it from being refilled.
pub(super) fn is_used_up(rule: &Rule, decision: &Decision) -> bool {
    match rule.spec.algorithm {
        AlgorithmKind::FixedWindow | AlgorithmKind::FirstHitWindow => {
            decision.owed() > decision.limit()
        }
        _ => decision.remaining() == 0,
    }
}
