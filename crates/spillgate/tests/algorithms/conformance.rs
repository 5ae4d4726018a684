//! Words in a plain map conform.

use spillgate::AlgorithmKind;
use spillgate_testing::conformance::{histories, recorded};

use crate::algorithms::words::Words;

const CASES: u32 = 125;

#[test]
fn words_answer_as_recorded() {
    for kind in AlgorithmKind::ALL {
        recorded(kind, Words::new);
    }
}

#[test]
fn token_buckets_answer_as_the_model() {
    histories(AlgorithmKind::TokenBucket, CASES, Words::new);
}

#[test]
fn leaky_buckets_answer_as_the_model() {
    histories(AlgorithmKind::LeakyBucket, CASES, Words::new);
}

#[test]
fn leaky_shapers_answer_as_the_model() {
    histories(AlgorithmKind::LeakyShaper, CASES, Words::new);
}

#[test]
fn interval_buckets_answer_as_the_model() {
    histories(AlgorithmKind::IntervalBucket, CASES, Words::new);
}

#[test]
fn fixed_windows_answer_as_the_model() {
    histories(AlgorithmKind::FixedWindow, CASES, Words::new);
}

#[test]
fn first_hit_windows_answer_as_the_model() {
    histories(AlgorithmKind::FirstHitWindow, CASES, Words::new);
}

#[test]
fn sliding_windows_answer_as_the_model() {
    histories(AlgorithmKind::SlidingWindow, CASES, Words::new);
}
