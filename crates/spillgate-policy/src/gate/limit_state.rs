use std::fmt;

use spillgate::Decision;

use crate::config::spec::{Metadata, NodeMode};
use crate::key::Described;
use crate::policy::Rule;
use crate::store::Spend;
use crate::{Key, Mode};

/// The state of one limit after a decision.
#[derive(Clone, Copy)]
pub struct LimitState<'p> {
    pub(super) rule: &'p Rule,
    pub(super) spend: &'p Spend,
    pub(super) decision: &'p Decision,
}

impl<'p> LimitState<'p> {
    /// The limit's name.
    #[must_use]
    pub fn name(&self) -> &'p str {
        &self.rule.name
    }

    /// The limit's place in the policy.
    #[must_use]
    pub fn place(&self) -> usize {
        self.spend.limit
    }

    /// Whether the limit refuses. One in [quota mode](Self::is_quota_mode) does in a call that is
    /// denied since it exceeds all of them.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.spend.is_shadow { Mode::Shadow } else { Mode::Enforce }
    }

    /// The name that answers show of a limit of a [tree](crate::Domain), if it has one.
    #[must_use]
    pub fn shown_name(&self) -> Option<&'p str> {
        self.rule.scope.as_ref()?.shown.as_deref()
    }

    /// True if the limit is one of a [tree](crate::Domain) that denies everything. Then its decision
    /// has no quota, only a period.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.rule.is_closed()
    }

    /// True if the limit is one of a [tree](crate::Domain) in [quota mode](NodeMode::Quota).
    #[must_use]
    pub fn is_quota_mode(&self) -> bool {
        self.rule.scope.as_ref().is_some_and(|scope| scope.mode == NodeMode::Quota)
    }

    /// True if the limit is on concurrency, be it [fixed](crate::Limit::concurrent) or
    /// [adaptive](crate::Limit::adaptive): what remains are permits.
    #[must_use]
    pub fn is_concurrency(&self) -> bool {
        self.rule.is_hold && !self.is_share()
    }

    /// True if the limit [follows load](crate::Limit::adaptive).
    #[must_use]
    pub fn is_adaptive(&self) -> bool {
        self.rule.adaptive.is_some()
    }

    /// True if the limit lets a share of all requests through: its decision has no numbers that
    /// would tell a caller anything.
    #[must_use]
    pub fn is_share(&self) -> bool {
        self.rule.adaptive.as_ref().is_some_and(|adaptive| adaptive.is_share())
    }

    /// The metadata that responses carry while a limit of a [tree](crate::Domain) is not exceeded.
    #[must_use]
    pub fn metadata(&self) -> Option<&'p Metadata> {
        self.rule.scope.as_ref().map(|scope| &scope.metadata)
    }

    /// True if the quota came with the call.
    #[must_use]
    pub fn is_of_call(&self) -> bool {
        self.spend.quota.is_some()
    }

    /// True if the request goes ahead at once, and its response changes nothing.
    // Not inlined: in most policies every limit is plain.
    #[inline(never)]
    pub(super) fn is_plain(self) -> bool {
        self.decision.is_allowed() && self.decision.wait().is_zero() && !self.rule.is_settled()
    }

    /// What the request costs under the limit.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.spend.cost
    }

    /// What was decided.
    pub fn decision(&self) -> &'p Decision {
        self.decision
    }

    /// What the limit counted under.
    #[must_use]
    pub fn key(&self) -> &'p Key {
        &self.spend.key
    }

    /// What the limit counted under, for people: each part with its value, secrets as
    /// fingerprints.
    pub fn counted(&self) -> impl fmt::Display + use<'p> {
        Described::masked(&self.spend.key, &self.rule.per)
    }
}

/// See [`Outcome::nearest`](super::Outcome::nearest).
pub(super) fn nearest<'p>(
    limits: impl Iterator<Item = LimitState<'p>> + Clone,
) -> Option<LimitState<'p>> {
    let denied = limits.clone().filter(|limit| limit.decision().is_denied());
    // One that never passes is waited for longest.
    let longest = denied.max_by_key(|limit| {
        let retry_after = limit.decision().retry_after();
        (retry_after.is_none(), retry_after)
    });
    longest.or_else(|| {
        limits.min_by(|one, other| {
            let share = |limit: &LimitState<'_>| {
                (u128::from(limit.decision().remaining()), u128::from(limit.decision().limit()))
            };
            let ((left, of), (other_left, other_of)) = (share(one), share(other));
            (left * other_of).cmp(&(other_left * of))
        })
    })
}

debug_fields!(self: LimitState<'_> {
    name: self.name(),
    key: format_args!("{}", self.counted()),
    decision: self.decision(),
});
