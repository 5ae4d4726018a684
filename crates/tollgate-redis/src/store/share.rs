use std::num::NonZeroU32;
use std::time::Duration;

use tollgate::{AlgorithmKind, Quota, Timestamp};
use tollgate_policy::store::LimitSpec;

/// The limit that a node keeps by itself while it cannot ask, as one of `nodes`.
pub(super) fn share_of_limit(limit: &LimitSpec, nodes: NonZeroU32) -> LimitSpec {
    let mut share = limit.clone();
    let kind = limit.algorithm;
    share.quota = share_of(kind, limit.quota, nodes);
    let tiers = share.tiers.iter_mut().map(|(_, quota)| quota);
    let overrides = share.overrides.iter_mut().map(|(_, quota)| quota);
    tiers.chain(overrides).for_each(|quota| *quota = share_of(kind, *quota, nodes));
    share
}

/// A quota divided by the number of nodes, rounded down, but at least one token: where there
/// are more nodes than tokens, all of them together may spend more than the quota.
pub(super) fn share_of(kind: AlgorithmKind, quota: Quota, nodes: NonZeroU32) -> Quota {
    let nodes = u64::from(nodes.get());
    let burst = (quota.burst() / nodes).max(1);
    let share = match quota.period() {
        None => Quota::once(burst),
        Some(period) => {
            let amount = (quota.amount() / nodes).max(1);
            let period = if amount * nodes == quota.amount() || is_window(kind, &quota, nodes) {
                period
            } else {
                // The same rate, to the nanosecond.
                let nanos = period.as_nanos() * u128::from(amount) * u128::from(nodes);
                longest(nanos.div_ceil(u128::from(quota.amount())), burst)
            };
            Quota::per(amount, period).burst(burst)
        }
    };
    // A share is smaller in every respect, so it is valid if the quota is.
    share.build().unwrap_or(quota)
}
