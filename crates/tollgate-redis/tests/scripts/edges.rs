//! Where one more, or one nanosecond less, makes a difference.

use std::cell::RefCell;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tollgate::algorithm::Algorithm;
use tollgate::{AlgorithmKind, Quota, Timestamp};
use tollgate_redis::engine::{Entry, Op};
use tollgate_redis::{State, Terms};
use tollgate_testing::Limit;
use tollgate_testing::strategy::{self, Pause, Size};

use crate::alike::{Story, compare};
use crate::case::name;
use crate::client::Client;
use crate::common::Server;

/// A caller with a past, who asks for one more than there is, and then for all there is.
fn about_all_there_is() -> impl Strategy<Value = Story> {
    let limits = strategy::limits(proptest::sample::select(&AlgorithmKind::ALL[..]));
    let past = vec((strategy::sizes(), strategy::pauses()), 1..4);
    (limits, strategy::moments(), past).prop_map(|(limit, start, past)| ask(&limit, start, &past))
}

fn ask(limit: &Limit, start: Timestamp, past: &[(Size, Pause)]) -> Story {
    let Limit { kind, quota, .. } = *limit;
    let terms = Terms { kind, quota, is_override: false };
    let algorithm = terms.algorithm().unwrap();
    let fresh = algorithm.fresh(Timestamp::ZERO);
    let (mut word, mut now) = (fresh, start);
    for (size, pause) in past {
        word = algorithm.charge(word, now, size.under(limit));
        now = now + pause.under(limit);
    }
    let all = algorithm.remaining(word, now);
    let spend = |cost| {
        let op = Op::Spend { cost, is_shadow: false };
        (now, vec![Entry { name: name(0), terms, fresh, op }])
    };
    (vec![(name(0), State { terms, word })], vec![spend(all + 1), spend(all)])
}

#[test]
fn all_there_is_can_be_spent_and_no_more() {
    let client = RefCell::new(Client::new(Server::redis()));
    let mut runner = TestRunner::new(strategy::cases(5_000));
    let outcome =
        runner.run(&about_all_there_is(), |story| compare(&mut client.borrow_mut(), &story));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Calls around the beginnings of windows, each of which is told by a division whose result a
/// number of Lua just misses: that of a period near a power of two, into so many of it.
fn around_beginnings(kind: AlgorithmKind, period: u64) -> Story {
    let quota = Quota::per(1, Duration::from_nanos(period)).build().unwrap();
    let terms = Terms { kind, quota, is_override: false };
    let fresh = terms.algorithm().unwrap().fresh(Timestamp::ZERO);
    let op = Op::Spend { cost: 1, is_shadow: false };
    let windows = (0..62).map_while(|bit| (1_u64 << bit).checked_mul(period));
    let beginnings = windows.take_while(|begin| *begin < Timestamp::MAX.as_nanos());
    let moments = beginnings.flat_map(|begin| [begin - 1, begin, begin + 1]);
    let call = |now| (Timestamp::from_nanos(now), vec![Entry { name: name(0), terms, fresh, op }]);
    (Vec::new(), moments.map(call).collect())
}

#[test]
fn windows_begin_on_the_nanosecond() {
    let client = &mut Client::new(Server::redis());
    for kind in [AlgorithmKind::FixedWindow, AlgorithmKind::SlidingWindow] {
        for bit in 3..62 {
            for off in [-1, 1, 3] {
                let period = (1_u64 << bit).saturating_add_signed(off);
                compare(client, &around_beginnings(kind, period)).unwrap();
            }
        }
    }
}
