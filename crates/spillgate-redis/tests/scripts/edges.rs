//! Where one more, or one nanosecond less, makes a difference.

use std::cell::RefCell;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use spillgate::algorithm::{Algorithm, Word};
use spillgate::{AlgorithmKind, Quota, Timestamp};
use spillgate_redis::backend::{Entry, Op};
use spillgate_redis::{State, Terms};
use spillgate_testing::strategy;

use crate::common::Server;
use crate::scripts::alike::{Story, compare};
use crate::scripts::case::name;
use crate::scripts::runner::ScriptRunner;

/// A caller who asks for one more than there is, and then for all there is.
fn asks_for_all(terms: Terms, word: Word, now: Timestamp) -> Story {
    let algorithm = terms.algorithm().unwrap();
    let fresh = algorithm.fresh(Timestamp::ZERO);
    let spend = |cost| {
        let op = Op::Spend { cost, is_shadow: false };
        (now, vec![Entry { name: name(0), terms, algorithm, fresh, op }])
    };
    let all = algorithm.remaining(word, now);
    (vec![(name(0), State::new(terms, word))], vec![spend(all + 1), spend(all)])
}

/// Callers who have spent something under any limit.
fn callers() -> impl Strategy<Value = Story> {
    let limits = strategy::limits(proptest::sample::select(&AlgorithmKind::ALL[..]));
    let past = vec((strategy::sizes(), strategy::pauses()), 1..4);
    (limits, strategy::moments(), past).prop_map(|(limit, start, past)| {
        let terms = Terms::new(limit.kind, limit.quota);
        let algorithm = terms.algorithm().unwrap();
        let (mut word, mut now) = (algorithm.fresh(Timestamp::ZERO), start);
        for (size, pause) in past {
            word = algorithm.debit_up_to(word, now, size.under(&limit), algorithm.deepest());
            now = now + pause.under(&limit);
        }
        asks_for_all(terms, word, now)
    })
}

/// Callers of a window before that weighs as much as it can: so much that its weight is worked
/// out with numbers of more than 64 bits.
fn callers_of_a_full_window() -> impl Strategy<Value = Story> {
    (40..60_u32, any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(bits, rest, spent, past)| {
        let period = (1 << bits) | (rest & ((1 << bits) - 1));
        let amount = (1 << (bits / 2)) - 1;
        let quota = Quota::per(amount, Duration::from_nanos(period)).build().unwrap();
        let terms = Terms::new(AlgorithmKind::SlidingWindow, quota);
        let algorithm = terms.algorithm().unwrap();
        let fresh = algorithm.fresh(Timestamp::ZERO);
        let word = algorithm.debit_up_to(fresh, Timestamp::ZERO, 1 + spent % amount, u64::MAX);
        asks_for_all(terms, word, Timestamp::from_nanos(period + past % period))
    })
}

fn are_answered_alike(stories: impl Strategy<Value = Story>) {
    let client = RefCell::new(ScriptRunner::new(Server::redis()));
    let mut runner = TestRunner::new(strategy::cases(1_000));
    let outcome = runner.run(&stories, |story| compare(&mut client.borrow_mut(), &story));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn all_there_is_can_be_spent_and_no_more() {
    are_answered_alike(callers());
}

#[test]
fn all_there_is_beside_a_full_window_can_be_spent_and_no_more() {
    are_answered_alike(callers_of_a_full_window());
}

/// Calls around the beginnings of windows whose number a division in Lua may just miss: where
/// both it and the period are near a power of two.
fn around_beginnings(kind: AlgorithmKind, period: u64) -> Story {
    let quota = Quota::per(1, Duration::from_nanos(period)).build().unwrap();
    let terms = Terms::new(kind, quota);
    let algorithm = terms.algorithm().unwrap();
    let fresh = algorithm.fresh(Timestamp::ZERO);
    let op = Op::Spend { cost: 1, is_shadow: false };
    let numbers = (1..62).flat_map(|bit| [1_u64 << bit, (1_u64 << bit) + 1]);
    let windows = numbers.map_while(|number| number.checked_mul(period));
    let beginnings = windows.take_while(|begin| *begin < Timestamp::MAX.as_nanos());
    let moments = beginnings.flat_map(|begin| [begin - 1, begin, begin + 1]);
    let call = |now| {
        (Timestamp::from_nanos(now), vec![Entry { name: name(0), terms, algorithm, fresh, op }])
    };
    (Vec::new(), moments.map(call).collect())
}

#[test]
fn windows_begin_on_the_nanosecond() {
    let client = &mut ScriptRunner::new(Server::redis());
    for kind in [AlgorithmKind::FixedWindow, AlgorithmKind::SlidingWindow] {
        for bit in 4..62 {
            for off in [-7, -3, 1, 4] {
                let period = (1_u64 << bit).saturating_add_signed(off);
                compare(client, &around_beginnings(kind, period)).unwrap();
            }
        }
    }
}

/// Callers of an interval bucket who owe more than is counted, and go on.
fn callers_in_debt() -> impl Strategy<Value = Story> {
    let limits = strategy::limits(Just(AlgorithmKind::IntervalBucket));
    let steps = vec((0..6_u8, any::<u64>(), 0..63_u32, strategy::pauses(), any::<bool>()), 1..12);
    (limits, strategy::moments(), steps).prop_map(|(limit, start, steps)| {
        let terms = Terms::new(limit.kind, limit.quota);
        let algorithm = terms.algorithm().unwrap();
        let fresh = algorithm.fresh(Timestamp::ZERO);
        let (mut now, mut left) = (start, fresh);
        let calls = steps.into_iter().map(|(verb, amount, fewer, pause, is_long)| {
            // Of any size up to the deepest debt, and some of them beyond.
            let amount = amount >> fewer;
            let op = match verb {
                0..=2 => Op::Debit { amount, most: u64::MAX },
                3 => Op::GiveBack { amount, spent: Some(left) },
                4 => Op::GiveBack { amount, spent: None },
                _ => Op::Spend { cost: amount, is_shadow: false },
            };
            left = algorithm.debit_up_to(left, now, amount, algorithm.deepest());
            let (call, pause) = (now, pause.under(&limit));
            now = now + if is_long { pause.saturating_mul(1000) } else { pause };
            (call, vec![Entry { name: name(0), terms, algorithm, fresh, op }])
        });
        (Vec::new(), calls.collect())
    })
}

#[test]
fn debts_deeper_than_a_count_are_told_alike() {
    are_answered_alike(callers_in_debt());
}

/// Callers who spend on, and are then given back what they spent before.
fn callers_who_settle_late() -> impl Strategy<Value = Story> {
    let limits = strategy::limits(proptest::sample::select(&AlgorithmKind::ALL[..]));
    let sizes = (strategy::sizes(), strategy::sizes(), strategy::sizes());
    // In hundredths of the time in which everything is refilled.
    let pauses = (0..250_u32, 0..250_u32);
    (limits, strategy::moments(), sizes, pauses).prop_map(|(limit, start, sizes, pauses)| {
        let terms = Terms::new(limit.kind, limit.quota);
        let algorithm = terms.algorithm().unwrap();
        let fresh = algorithm.fresh(Timestamp::ZERO);
        let window = algorithm.window().unwrap_or_default();
        let after = |hundredths: u32| (window / 100).saturating_mul(hundredths);
        let (later, settled) = (start + after(pauses.0), start + after(pauses.0) + after(pauses.1));
        let [debit, more, unused] = [sizes.0, sizes.1, sizes.2].map(|size| size.under(&limit));
        let spent = algorithm.debit_up_to(fresh, start, debit, algorithm.deepest());
        let ops = [
            (start, Op::Debit { amount: debit, most: u64::MAX }),
            (later, Op::Debit { amount: more, most: u64::MAX }),
            (settled, Op::GiveBack { amount: unused, spent: Some(spent) }),
        ];
        let entry = |op| Entry { name: name(0), terms, algorithm, fresh, op };
        (Vec::new(), ops.map(|(now, op)| (now, vec![entry(op)])).to_vec())
    })
}

#[test]
fn what_is_given_back_late_is_given_back_alike() {
    are_answered_alike(callers_who_settle_late());
}
