//! Words read by their layout say what the algorithm says.

use proptest::prelude::*;
use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, Layout, Word};
use spillgate_testing::strategy;

use crate::algorithms::situation::{Situation, limits, lived};

/// The count in a word's lowest bits, and what is above them.
fn split(bits: u64, count_bits: u32) -> (u64, u64) {
    (bits >> count_bits, bits & ((1 << count_bits) - 1))
}

/// What has been spent by a caller who was charged for `amount` and never before.
fn spent_by_layout(word: Word, layout: Layout, now: Timestamp) -> u64 {
    match layout {
        Layout::Bucket { interval, refills, .. } => {
            let now = if refills { now.as_nanos() } else { 0 };
            (word.to_bits() - now) / interval
        }
        Layout::IntervalBucket { quantum, count_bits, .. } => {
            let (last, spent) = split(word.to_bits(), count_bits);
            assert_eq!(last, now.as_nanos().div_ceil(quantum).min(u64::MAX >> count_bits));
            spent
        }
        Layout::FixedWindow { quantum, count_bits, length, .. } => {
            let (begun, count) = split(word.to_bits(), count_bits);
            let now = now.as_nanos();
            let at = if length == 1 { now / quantum } else { now.div_ceil(quantum) };
            assert_eq!(begun, at.min(u64::MAX >> count_bits));
            count
        }
        Layout::SlidingWindow { quantum, count_bits, .. } => {
            let (rest, current) = split(word.to_bits(), count_bits);
            assert_eq!(split(rest, count_bits), (now.as_nanos() / quantum, 0));
            current
        }
        other => unreachable!("a layout that this test does not know: {other:?}"),
    }
}

proptest! {
    #![proptest_config(strategy::cases(5_000))]

    #[test]
    fn the_layout_tells_what_is_spent(caller in lived(), share in 1..=256_u64) {
        let Situation { algorithm, now, .. } = caller;
        let amount = (algorithm.limit() / share).max(1);
        let word = algorithm.starting_from(Word::from_bits(0)).fresh(Timestamp::ZERO);
        let word = algorithm.debit_up_to(word, now, amount, u64::MAX);
        prop_assert_eq!(spent_by_layout(word, algorithm.layout(), now), amount);
    }

    #[test]
    fn a_start_that_is_remembered_is_the_same(limit in limits(), caller in lived()) {
        let algorithm = limit.algorithm().unwrap();
        let start = algorithm.fresh(Timestamp::ZERO);
        let full = spillgate_testing::Limit { start: spillgate::Start::Full, ..limit };
        let remembered = full.algorithm().unwrap().starting_from(start);
        prop_assert_eq!(remembered, algorithm);
        prop_assert_eq!(remembered.layout(), algorithm.layout());
        prop_assert_eq!(remembered.fresh(caller.now), algorithm.fresh(caller.now));
    }
}
