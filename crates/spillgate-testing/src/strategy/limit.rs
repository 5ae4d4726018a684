use proptest::prelude::*;
use spillgate::{AlgorithmKind, Quota, Start, Timestamp};

use super::{moments, quotas};
use crate::Limit;

/// Limits of some kinds, with quotas that they can count.
pub fn limits(kinds: impl Strategy<Value = AlgorithmKind>) -> impl Strategy<Value = Limit> {
    let starts = prop_oneof![3 => Just(Start::Full), 1 => Just(Start::Empty)];
    (kinds, quotas(), starts, moments())
        .prop_filter_map("countable", |(kind, quota, start, born)| {
            limit_of(kind, quota, start, born)
        })
}

/// The limit, or one like it that the algorithm can count: without the burst, as
/// windows need it, and starting full, as all but buckets need it.
#[must_use]
pub fn limit_of(kind: AlgorithmKind, quota: Quota, start: Start, born: Timestamp) -> Option<Limit> {
    [(quota, start), (quota, Start::Full), (without_burst(quota), Start::Full)]
        .into_iter()
        .map(|(quota, start)| Limit { kind, quota, start, born })
        .find(|limit| limit.algorithm().is_ok())
}

fn without_burst(quota: Quota) -> Quota {
    let Some(period) = quota.period() else { return quota };
    Quota::per(quota.amount(), period).build().unwrap_or(quota)
}
