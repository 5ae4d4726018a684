//! How close callers come to their quota.

use spillgate_policy::LimitState;

/// How many calls left so much of their quota used, in tenths.
pub(super) type UsedShares = [u64; 10];

/// The place of a call among the tenths of its quota, by what is used after it; `None` if the limit
/// has no quota to come close to.
pub(super) fn used_tenth(limit: LimitState<'_>) -> Option<usize> {
    let decision = limit.decision();
    let (most, left) = (decision.limit(), decision.remaining());
    if most == 0 || limit.is_share() {
        return None;
    }
    let used = u128::from(most.saturating_sub(left));
    // Up to 10 % is the first tenth, and so is nothing.
    let tenth = (used * 10).div_ceil(u128::from(most)).saturating_sub(1);
    usize::try_from(tenth).ok().map(|tenth| tenth.min(9))
}
