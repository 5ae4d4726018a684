use std::time::Duration;

use proptest::prelude::*;
use spillgate::Quota;

use super::magnitudes;

/// What people write, and what fits the stated maxima just so.
const FAMILIAR: &[&str] = &[
    "1/s burst 5",
    "5/s",
    "10/s burst 20",
    "100/min",
    "1000/h burst 50",
    "1/day",
    "16000/s",
    "131000/min",
    "1000000/s",
    "1000000/s burst 1",
    "3/s",
    "7/ms",
    "1/ns",
    "1 per 7611 week",
];

/// Quotas from the slowest to the fastest, with small and large bursts, and some
/// that are never refilled.
pub fn quotas() -> impl Strategy<Value = Quota> {
    let familiar = proptest::sample::select(FAMILIAR);
    prop_oneof![
        2 => familiar.prop_filter_map("a quota", |text| text.parse().ok()),
        4 => rates(),
        1 => magnitudes(62).prop_filter_map("a quota", |burst| Quota::once(burst).build().ok()),
    ]
}

fn rates() -> impl Strategy<Value = Quota> {
    let bursts = prop_oneof![
        2 => Just(None),
        1 => Just(Some(1)),
        2 => (2..10_u64).prop_map(Some),
        2 => magnitudes(62).prop_map(Some),
    ];
    let periods = prop_oneof![
        2 => magnitudes(62),
        1 => proptest::sample::select(vec![1_000_000, 1_000_000_000, 60_000_000_000]),
    ];
    (magnitudes(40), periods, bursts).prop_filter_map("a quota", |(amount, period, burst)| {
        let quota = Quota::per(amount, Duration::from_nanos(period));
        burst.map_or(quota, |burst| quota.burst(burst)).build().ok()
    })
}
