//! A caller at a moment, under any limit.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{AlgorithmKind, Decision, Timestamp};
use spillgate_testing::strategy::{self, Pause, Size};
use spillgate_testing::{Limit, Observed};

#[derive(Clone)]
pub(crate) struct Situation {
    pub(crate) limit: Limit,
    pub(crate) algorithm: AnyAlgorithm,
    pub(crate) word: Word,
    pub(crate) now: Timestamp,
    pub(crate) cost: u64,
}

impl fmt::Debug for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, word, now, cost, .. } = self;
        write!(f, "{limit}; word {:#x} at {now} for {cost}", word.to_bits())
    }
}

impl Situation {
    pub(crate) fn decide(&self, now: Timestamp, cost: u64) -> Observed {
        Decision::of(self.algorithm, self.word, now, cost).0.into()
    }

    pub(crate) fn passes(&self, now: Timestamp, cost: u64) -> bool {
        self.algorithm.spend(self.word, now, cost).is_some()
    }
}

pub(crate) fn limits() -> impl Strategy<Value = Limit> {
    strategy::limits(proptest::sample::select(&AlgorithmKind::ALL[..]))
}

/// Callers with a past, and callers whose word is garbage.
pub(crate) fn situations() -> impl Strategy<Value = Situation> {
    prop_oneof![3 => lived(), 1 => garbage()]
}

/// Words that no past explains.
pub(crate) fn garbage() -> impl Strategy<Value = Situation> {
    let bits = prop_oneof![any::<u64>(), u64::MAX - 9..=u64::MAX, strategy::magnitudes(64)];
    (limits(), bits, strategy::moments(), strategy::sizes()).prop_map(|(limit, bits, now, size)| {
        Situation {
            algorithm: limit.algorithm().unwrap(),
            limit,
            word: Word::from_bits(bits),
            now,
            cost: size.under(&limit),
        }
    })
}

/// Words that a few spends and refunds have left, time going on.
pub(crate) fn lived() -> impl Strategy<Value = Situation> {
    let past = vec((any::<bool>(), strategy::sizes(), strategy::pauses()), 0..5);
    (limits(), strategy::moments(), past, strategy::sizes())
        .prop_map(|(limit, start, past, size)| live(limit, start, &past, size))
}

fn live(limit: Limit, start: Timestamp, past: &[(bool, Size, Pause)], size: Size) -> Situation {
    let algorithm = limit.algorithm().unwrap();
    let (mut word, mut now) = (algorithm.fresh(Timestamp::ZERO), start);
    for (gives, size, pause) in past {
        let amount = size.under(&limit);
        word = match gives {
            true => algorithm.refund(word, now, amount),
            false => algorithm.debit_up_to(word, now, amount, u64::MAX),
        };
        now = now + pause.under(&limit);
    }
    Situation { algorithm, limit, word, now, cost: size.under(&limit) }
}
