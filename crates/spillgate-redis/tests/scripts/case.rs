//! Calls of a few callers under two limits, with whatever past.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use spillgate::account::SavedPile;
use spillgate::algorithm::{Algorithm, Word};
use spillgate::{AlgorithmKind, Timestamp};
use spillgate_redis::backend::{Entry, Op};
use spillgate_redis::{Name, Past, State, Terms};
use spillgate_testing::Limit;
use spillgate_testing::strategy::{self, Pause, Size};

/// How many callers there are.
pub(crate) const CALLERS: usize = 3;

/// Some limits, what is kept already, and what is asked then.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    limits: [Limit; 2],
    /// For each caller the limit that it is counted by, its word, and that of the other limit if its
    /// quota has moved, if it is known.
    known: [Option<(usize, u64, Option<u64>)>; CALLERS],
    start: Timestamp,
    steps: Vec<Step>,
}

/// A call about some callers, some time before or after the one before.
#[derive(Clone, Debug)]
struct Step {
    pause: Pause,
    is_back: bool,
    asks: Vec<Ask>,
}

/// What is asked about one caller, in terms of a limit yet to be chosen.
#[derive(Clone, Debug)]
struct Ask {
    caller: usize,
    limit: usize,
    is_override: bool,
    verb: Verb,
    sizes: (Size, Size),
    /// The word of a caller that is not known, unless it is the limit's own.
    fresh: Option<u64>,
    /// The word that a spend left, unless it is what would be left now.
    spent: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Spend,
    SpendInShadow,
    Take,
    Debit,
    Refund,
    GiveBack,
    Look,
    Read,
    Reset,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let limits = || strategy::limits(proptest::sample::select(&AlgorithmKind::ALL[..]));
    let known =
        || proptest::option::weighted(0.3, (0..2_usize, words(), proptest::option::of(words())));
    let known = [known(), known(), known()];
    ([limits(), limits()], known, strategy::moments(), vec(steps(), 1..20))
        .prop_map(|(limits, known, start, steps)| Case { limits, known, start, steps })
}

/// Words that no past explains. In some all low bits are set, which is no count ever kept.
fn words() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        u64::MAX - 9..=u64::MAX,
        strategy::magnitudes(64),
        0..10_u64,
        (any::<u64>(), 0..64_u32).prop_map(|(bits, low)| bits | (u64::MAX >> low)),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    (strategy::pauses(), prop::bool::weighted(0.2), vec(asks(), 1..4))
        .prop_map(|(pause, is_back, asks)| Step { pause, is_back, asks })
}

fn asks() -> impl Strategy<Value = Ask> {
    let verbs = prop_oneof![
        8 => Just(Verb::Spend),
        2 => Just(Verb::SpendInShadow),
        3 => Just(Verb::Take),
        3 => Just(Verb::Debit),
        2 => Just(Verb::Refund),
        4 => Just(Verb::GiveBack),
        1 => Just(Verb::Look),
        1 => Just(Verb::Read),
        1 => Just(Verb::Reset),
    ];
    // Mostly each caller has its own limit, or nearly every call would find other terms.
    let limits = prop_oneof![9 => Just(None), 1 => (0..2_usize).prop_map(Some)];
    let sizes = (strategy::sizes(), strategy::sizes());
    let fresh = proptest::option::weighted(0.1, words());
    let overrides = prop::bool::weighted(0.03);
    let spent = proptest::option::weighted(0.3, words());
    (0..CALLERS, limits, overrides, verbs, sizes, fresh, spent).prop_map(
        |(caller, limit, is_override, verb, sizes, fresh, spent)| {
            let limit = limit.unwrap_or(caller % 2);
            Ask { caller, limit, is_override, verb, sizes, fresh, spent }
        },
    )
}

impl Case {
    fn terms(&self, limit: usize, is_override: bool) -> Terms {
        let Limit { kind, quota, .. } = self.limits[limit];
        Terms { is_override, ..Terms::new(kind, quota) }
    }

    /// What is kept at first.
    pub(crate) fn states(&self) -> impl Iterator<Item = (Name, State)> + '_ {
        let known = self.known.iter().enumerate();
        known.filter_map(|(caller, known)| {
            let (limit, bits, moved) = (*known)?;
            let (terms, word) = (self.terms(limit, false), Word::from_bits(bits));
            let past = moved.map(|bits| {
                let (quota, lag) = (terms.quota, Duration::ZERO);
                let piles = vec![SavedPile { quota, word: Word::from_bits(bits), lag }];
                Box::new(Past { debt: word, at: self.start, since: self.start, piles })
            });
            Some((name(caller), State { terms, word, past }))
        })
    }

    /// When each call is made, and of what.
    pub(crate) fn calls(&self) -> Vec<(Timestamp, Vec<Entry>)> {
        let mut now = self.start;
        let calls = self.steps.iter().map(|step| {
            let pause = step.pause.under(&self.limits[0]);
            now = if step.is_back { now - pause } else { now + pause };
            (now, step.asks.iter().map(|ask| self.entry(ask, now)).collect())
        });
        calls.collect()
    }

    fn entry(&self, ask: &Ask, now: Timestamp) -> Entry {
        let limit = &self.limits[ask.limit];
        let terms = self.terms(ask.limit, ask.is_override);
        let algorithm = terms.algorithm().unwrap();
        let own = limit.algorithm().unwrap().fresh(Timestamp::ZERO);
        let (size, other) = (ask.sizes.0.under(limit), ask.sizes.1.under(limit));
        let spent = || {
            let left =
                || algorithm.debit_up_to(algorithm.fresh(now), now, other, algorithm.deepest());
            ask.spent.map_or_else(left, Word::from_bits)
        };
        let op = match ask.verb {
            Verb::Spend => Op::Spend { cost: size, is_shadow: false },
            Verb::SpendInShadow => Op::Spend { cost: size, is_shadow: true },
            Verb::Take => Op::Take { least: size, most: other },
            Verb::Debit => Op::Debit { amount: size, most: other },
            Verb::Refund => Op::GiveBack { amount: size, spent: None },
            Verb::GiveBack => Op::GiveBack { amount: size, spent: Some(spent()) },
            Verb::Look => Op::Look,
            Verb::Read => Op::Read,
            Verb::Reset => Op::Reset,
        };
        let fresh = ask.fresh.map_or(own, Word::from_bits);
        Entry { name: name(ask.caller), terms, algorithm, fresh, op }
    }
}

/// The name of a caller.
pub(crate) fn name(caller: usize) -> Name {
    Name::from_bytes([caller as u8; 16])
}
