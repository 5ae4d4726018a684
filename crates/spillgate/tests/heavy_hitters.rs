//! Counts of the most frequent keys are within the stated error, whatever the stream.

use std::collections::HashMap;

use proptest::prelude::*;
use spillgate::HeavyHitters;

/// Counts a stream of keys and how often each is counted, and compares with exact counts.
fn assert_within_error(stream: impl IntoIterator<Item = (u64, u64)>, capacity: usize) -> u64 {
    let mut hitters = HeavyHitters::new(capacity);
    let mut exact = HashMap::<u64, u64>::new();
    for (key, count) in stream {
        hitters.add_n(key, count, || key);
        *exact.entry(key).or_default() += count;
    }
    let total: u64 = exact.values().sum();
    assert_eq!(hitters.total(), total);
    assert!(hitters.iter().count() <= capacity);
    assert!(hitters.error() <= 2 * total / capacity as u64, "{} of {total}", hitters.error());
    let kept: HashMap<u64, u64> =
        hitters.iter().map(|(_, entry)| (entry.value, entry.count)).collect();
    for (key, count) in exact {
        let kept = kept.get(&key).copied().unwrap_or(0);
        assert!(kept <= count && count <= kept + hitters.error(), "key {key}");
    }
    hitters.error()
}

/// A small generator, so that streams are the same every time.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 29)
}

/// Keys whose frequencies fall like `1 / rank`, out of so many.
fn zipf(keys: u32, calls: u32) -> impl Iterator<Item = (u64, u64)> {
    let weights: Vec<f64> = (1..=keys).map(|rank| 1.0 / f64::from(rank)).collect();
    let cumulative: Vec<f64> = weights
        .iter()
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let total = cumulative.last().copied().unwrap_or(0.0);
    let mut state = 7;
    (0..calls).map(move |_| {
        let at = (random(&mut state) >> 11) as f64 / (1_u64 << 53) as f64 * total;
        (cumulative.partition_point(|sum| *sum < at) as u64, 1)
    })
}

#[test]
fn zipf_streams_are_counted_within_the_error() {
    assert_within_error(zipf(100_000, 500_000), 1024);
    assert_within_error(zipf(1_000_000, 500_000), 64);
    assert_eq!(assert_within_error(zipf(1000, 200_000), 1024), 0, "all of them fit");
}

#[test]
fn no_order_of_calls_hides_who_calls_most() {
    let once = |keys: std::ops::Range<u64>| keys.map(|key| (key, 1));
    let heavy = |calls: usize| std::iter::repeat_n((0, 1), calls);
    // New keys only; one heavy caller before, after and between them.
    assert_within_error(once(1..300_000), 1024);
    assert_within_error(heavy(2000).chain(once(1..300_000)), 1024);
    assert_within_error(once(1..300_000).chain(heavy(2000)), 1024);
    let between = once(1..300_000).flat_map(|call| {
        let heavy = call.0.is_multiple_of(100).then_some((0, 1));
        [Some(call), heavy].into_iter().flatten()
    });
    assert_within_error(between, 1024);
    // In turn, one more than there is room for: each leaves just before it comes again.
    assert_within_error((0..500_000).map(|call| (call % 1025, 1)), 1024);
    // Each twice as often as the one before.
    assert_within_error((0..40).flat_map(|key| [(key, 1 << key), (1000 + key, 1)]), 16);
}

#[test]
fn whoever_makes_a_large_part_of_all_calls_is_found() {
    let mut hitters = HeavyHitters::new(64);
    for call in 0_u64..100_000 {
        let key = if call % 10 == 0 { u64::MAX } else { call };
        hitters.add(key, || key);
    }
    let top = hitters.top(1);
    assert_eq!(top[0].value, u64::MAX);
    assert!((10_000 - hitters.error()..=10_000).contains(&top[0].count));
}

#[test]
fn counts_end_at_the_largest_number() {
    let mut hitters = HeavyHitters::new(2);
    for key in [1_u64, 1, 2, 3, 4] {
        hitters.add_n(key, u64::MAX - 1, || key);
    }
    hitters.add_n(5, u64::MAX, || 5);
    assert_eq!((hitters.total(), hitters.error()), (u64::MAX, u64::MAX));
    assert!(hitters.iter().all(|(_, kept)| kept.count > 0));
}

proptest! {
    #[test]
    fn counts_are_within_the_stated_error(
        calls in prop::collection::vec((prop_oneof![0_u64..4, 0_u64..400], 1_u64..50), 0..3000),
        capacity in 2_usize..40,
    ) {
        assert_within_error(calls, capacity);
    }
}
