//! What goes over the wire comes out as it went in, and nothing else comes out.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use spillgate::account::SavedPile;
use spillgate::algorithm::Word;
use spillgate::{AlgorithmKind, Timestamp};
use spillgate_redis::backend::{Fault, Found};
use spillgate_redis::script::{self, Keys};
use spillgate_redis::{Name, Past, State, Terms};
use spillgate_testing::strategy;

fn states() -> impl Strategy<Value = State> {
    let limits = || strategy::limits(proptest::sample::select(&AlgorithmKind::ALL[..]));
    let terms = || {
        (limits(), any::<bool>()).prop_map(|(limit, is_override)| Terms {
            is_override,
            ..Terms::new(limit.kind, limit.quota)
        })
    };
    let words = || any::<u64>().prop_map(Word::from_bits);
    let piles = proptest::collection::vec((words(), any::<u64>()), 1..9);
    let pasts = (words(), strategy::moments(), strategy::moments(), piles);
    (terms(), words(), proptest::option::of(pasts)).prop_map(|(terms, word, past)| {
        let past = past.map(|(debt, at, since, piles)| {
            let pile = |(word, lag)| SavedPile {
                quota: terms.quota,
                word,
                lag: Duration::from_nanos(lag),
            };
            Box::new(Past { debt, at, since, piles: piles.into_iter().map(pile).collect() })
        });
        State { terms, word, past }
    })
}

fn found() -> impl Strategy<Value = Found> {
    let words = || any::<u64>().prop_map(Word::from_bits);
    prop_oneof![
        words().prop_map(Found::Passed),
        words().prop_map(Found::Denied),
        states().prop_map(Found::Other),
        Just(Found::Gone),
    ]
}

/// A reply as the script writes it.
fn reply(now: Timestamp, answers: &[Found]) -> Vec<u8> {
    let mut bytes = now.as_nanos().to_be_bytes().to_vec();
    for answer in answers {
        let (tag, rest) = match answer {
            Found::Passed(word) => (0, word.to_bits().to_be_bytes().to_vec()),
            Found::Denied(word) => (1, word.to_bits().to_be_bytes().to_vec()),
            Found::Other(state) => {
                let bytes = state.to_bytes();
                (2, [&(bytes.len() as u16).to_be_bytes(), &bytes[..]].concat())
            }
            Found::Gone => (3, Vec::new()),
        };
        bytes.push(tag);
        bytes.extend(rest);
    }
    bytes
}

proptest! {
    #![proptest_config(strategy::cases(2_000))]

    #[test]
    fn a_state_is_read_as_it_was_written(state in states()) {
        prop_assert_eq!(State::from_bytes(&state.to_bytes()), Ok(state));
    }

    #[test]
    fn whatever_is_read_as_a_state_is_written_so(
        state in states(),
        at in 0..State::BYTES,
        byte in any::<u8>(),
    ) {
        let mut bytes = state.to_bytes();
        bytes[at] = byte;
        if let Ok(state) = State::from_bytes(&bytes) {
            prop_assert_eq!(state.to_bytes(), bytes);
        }
    }

    #[test]
    fn a_reply_is_read_whole_or_not_at_all(
        now in strategy::moments(),
        answers in proptest::collection::vec(found(), 0..4),
    ) {
        let bytes = reply(now, &answers);
        let read = script::reply(&bytes, answers.len()).unwrap();
        prop_assert_eq!((read.now, &read.answers[..]), (now, &answers[..]));
        for end in 0..bytes.len() {
            prop_assert!(script::reply(&bytes[..end], answers.len()).is_err());
        }
        prop_assert!(script::reply(&bytes, answers.len() + 1).is_err());
        prop_assert!(script::reply(&[&bytes[..], &[0]].concat(), answers.len()).is_err());
    }
}

/// The bytes are what other versions read: they may change only with the version.
#[test]
fn the_bytes_of_a_state_are_these() {
    let quota = "10/s burst 20".parse().unwrap();
    let kind = AlgorithmKind::IntervalBucket;
    let terms = Terms { is_override: true, ..Terms::new(kind, quota) };
    let bytes = State::new(terms, Word::from_bits(0x0102_0304_0506_0708)).to_bytes();
    let numbers = [10_u64, 1_000_000_000, 20].map(u64::to_be_bytes).concat();
    let expected = [&[3, 0x83], &numbers[..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat();
    assert_eq!(&bytes[..], expected);
}

#[test]
fn the_bytes_of_a_state_with_a_past_are_these() {
    let quotas = ["10/s burst 20", "5/s"].map(|quota| quota.parse().unwrap());
    let [at, since] = [5, 4].map(Timestamp::from_nanos);
    let (word, lag) = (Word::from_bits(6), Duration::from_nanos(8));
    let pile = SavedPile { quota: quotas[1], word, lag };
    let past = Past { debt: Word::from_bits(3), at, since, piles: vec![pile] };
    let terms = Terms::new(AlgorithmKind::TokenBucket, quotas[0]);
    let state = State { terms, word: Word::from_bits(7), past: Some(Box::new(past)) };
    let numbers = [10_u64, 1_000_000_000, 20, 7, 3, 5, 4, 5, 1_000_000_000, 5, 6, 8];
    let bytes = [&[3, 0], &numbers.map(u64::to_be_bytes).concat()[..]].concat();
    assert_eq!(&state.to_bytes()[..], bytes);
    assert_eq!(State::from_bytes(&bytes), Ok(state));
    assert!(State::from_bytes(&bytes[..bytes.len() - 1]).is_err());
}

#[test]
fn kinds_are_numbered_in_the_order_of_the_documentation() {
    for (number, kind) in AlgorithmKind::ALL.into_iter().enumerate() {
        let terms = Terms::new(kind, "10/s".parse().unwrap());
        assert_eq!(usize::from(terms.to_bytes()[1]), number);
    }
}

#[test]
fn what_could_not_have_been_written_is_refused() {
    let quota = "10/s".parse().unwrap();
    let terms = Terms::new(AlgorithmKind::FixedWindow, quota);
    let good = State::new(terms, Word::from_bits(0)).to_bytes();
    let fault = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        State::from_bytes(&bytes).unwrap_err().fault()
    };
    assert_eq!(fault(0, 0), Fault::Corrupt);
    assert_eq!(fault(0, b'a'), Fault::Corrupt);
    for other in [1, 2, 4, 31] {
        assert_eq!(fault(0, other), Fault::OtherVersion);
    }
    // There are seven kinds.
    assert_eq!(fault(1, 7), Fault::Corrupt);
    // More than one a nanosecond.
    assert_eq!(fault(2, 1), Fault::Corrupt);
    // A burst, which a fixed window has not.
    assert_eq!(fault(25, 11), Fault::Corrupt);
    assert_eq!(State::from_bytes(&[]).unwrap_err().fault(), Fault::Corrupt);
}

#[test]
fn moments_beyond_the_last_are_nonsense() {
    let bytes = (1_u64 << 62).to_be_bytes();
    assert_eq!(script::reply(&bytes, 0).unwrap_err().fault(), Fault::Nonsense);
}

#[test]
fn births_of_other_versions_are_told_as_such() {
    let mut bytes = vec![1];
    bytes.extend(1_700_000_000_000_000_000_u64.to_be_bytes());
    assert_eq!(script::born(&bytes), Ok(Timestamp::from_secs(1_700_000_000)));
    bytes[0] = 2;
    assert_eq!(script::born(&bytes).unwrap_err().fault(), Fault::OtherVersion);
    assert_eq!(script::born(&bytes[..4]).unwrap_err().fault(), Fault::OtherVersion);
    assert_eq!(script::born(&[1, 2]).unwrap_err().fault(), Fault::Corrupt);
}

#[test]
fn keys_differ_and_are_placed_by_their_name() {
    let keys = Keys::new("limits:");
    let name = Name::from_bytes(*b"0123456789abcdef");
    let hex = "{30313233343536373839616263646566}";
    assert_eq!(&keys.state(&name)[..], format!("limits:{hex}").as_bytes());
    assert_eq!(&keys.born(&name)[..], format!("limits:born:{hex}").as_bytes());
    let all = HashSet::from([keys.state(&name), keys.born(&name), keys.nodes()]);
    assert_eq!(all.len(), 3);
}
