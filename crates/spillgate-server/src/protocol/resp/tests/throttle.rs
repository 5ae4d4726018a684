use std::collections::HashMap;
use std::time::Duration;

use futures_util::FutureExt;
use proptest::prelude::*;
use spillgate::{Clock, ManualClock, WhenFull};
use spillgate_policy::store::Memory;

use super::{Tested, endpoint, endpoint_on};
use crate::protocol::resp::codec::{Decoder, Limits};
use crate::protocol::resp::command::Command;
use crate::protocol::resp::execute::decide;

/// One call; the error's text if there is one.
fn call(endpoint: &Tested, call: &str) -> Result<[i64; 5], String> {
    let line = format!("CL.THROTTLE {call}\n");
    let mut decoder = Decoder::default();
    let request = decoder.decode(line.as_bytes(), &Limits::default()).unwrap().unwrap();
    let reply = decide(Command::Throttle, endpoint, request.args).now_or_never().unwrap();
    let reply = reply.map_err(|error| error.to_string());
    reply.map(|reply| reply.integers())
}

#[test]
fn a_fresh_key_is_answered_as_redis_cell_documents() {
    let (endpoint, _) = endpoint();
    assert_eq!(call(&endpoint, "user123 15 30 60"), Ok([0, 16, 15, -1, 2]));
}

/// The cases of redis-cell's own test, with its times rounded up to seconds.
#[test]
fn the_cases_of_redis_cell_are_answered_as_there() {
    let (endpoint, clock) = endpoint();
    let start = clock.now();
    for (millis, quantity, answer) in [
        // Never more than the limit.
        (0, 6, [1, 5, 5, -1, 0]),
        (0, 1, [0, 5, 4, -1, 1]),
        (0, 1, [0, 5, 3, -1, 2]),
        (0, 1, [0, 5, 2, -1, 3]),
        (0, 1, [0, 5, 1, -1, 4]),
        (0, 1, [0, 5, 0, -1, 5]),
        (0, 1, [1, 5, 0, 1, 5]),
        (3000, 1, [0, 5, 2, -1, 3]),
        (3100, 1, [0, 5, 1, -1, 4]),
        (4000, 1, [0, 5, 1, -1, 4]),
        (8000, 1, [0, 5, 4, -1, 1]),
        (9500, 1, [0, 5, 4, -1, 1]),
        // A look.
        (9500, 0, [0, 5, 4, -1, 1]),
        (9500, 2, [0, 5, 2, -1, 3]),
        (9500, 5, [1, 5, 2, 3, 3]),
    ] {
        clock.set(start + Duration::from_millis(millis));
        assert_eq!(call(&endpoint, &format!("foo 4 1 1 {quantity}")), Ok(answer), "at {millis} ms");
    }
}

/// Seven a minute are one every 8,571,428,572 ns, seven of which are more than a minute.
#[test]
fn a_reset_is_as_long_as_the_parameters_say() {
    let (endpoint, clock) = endpoint();
    assert_eq!(call(&endpoint, "k 6 7 60 7"), Ok([0, 7, 0, -1, 60]));
    assert_eq!(call(&endpoint, "k 6 7 60"), Ok([1, 7, 0, 9, 60]));
    assert_eq!(call(&endpoint, "k 6 7 60 0"), Ok([0, 7, 0, -1, 60]));
    for left in (1..60).rev() {
        clock.advance(Duration::from_secs(1));
        let [.., reset] = call(&endpoint, "k 6 7 60 0").unwrap();
        assert_eq!(reset, left);
    }
    assert_eq!(call(&endpoint, "j 2 3 1 3"), Ok([0, 3, 0, -1, 1]));
}

#[test]
fn the_quota_is_not_full_before_a_call_that_needs_all_of_it_passes() {
    let (endpoint, clock) = endpoint();
    assert_eq!(call(&endpoint, "j 2 3 1 3"), Ok([0, 3, 0, -1, 1]));
    assert_eq!(call(&endpoint, "j 2 3 1 3"), Ok([1, 3, 0, 2, 2]));
    assert_eq!(call(&endpoint, "j 2 3 1 1"), Ok([1, 3, 0, 1, 1]));
    clock.advance(Duration::from_secs(1));
    assert_eq!(call(&endpoint, "j 2 3 1 3"), Ok([1, 3, 2, 1, 1]));
    clock.advance(Duration::from_secs(1));
    assert_eq!(call(&endpoint, "j 2 3 1 3"), Ok([0, 3, 0, -1, 1]));
}

#[test]
fn edges_get_the_right_answer() {
    let most = i64::MAX;
    for (text, answer) in [
        // No burst: one at a time.
        ("k 0 1 2".to_owned(), [0, 1, 0, -1, 2]),
        // A look at a key never seen.
        ("k 15 30 60 0".to_owned(), [0, 16, 16, -1, 0]),
        // Exactly the limit, and one more.
        ("k 15 30 60 16".to_owned(), [0, 16, 0, -1, 32]),
        ("k 15 30 60 17".to_owned(), [1, 16, 16, -1, 0]),
        // As much as an integer holds: neither wraps around nor passes.
        (format!("k 15 30 60 {most}"), [1, 16, 16, -1, 0]),
        // A billion a second: the interval is a nanosecond.
        ("k 999999999 1000000000 1 500000000".to_owned(), [0, 1_000_000_000, 500_000_000, -1, 1]),
        // 7 in 10 s: that the interval is rounded up is not told.
        ("k 6 7 10 7".to_owned(), [0, 7, 0, -1, 10]),
        // The longest interval.
        ("k 0 1 4611686018".to_owned(), [0, 1, 0, -1, 4_611_686_018]),
        // The largest count that is one a nanosecond.
        ("k 0 4611686018000000000 4611686018".to_owned(), [0, 1, 0, -1, 1]),
        // What an integer may look like to redis-cell.
        ("k +15 030 60 -0".to_owned(), [0, 16, 16, -1, 0]),
        // Keys are bytes, and an empty one is a key.
        (r#""\xff\x00\r\n" 15 30 60"#.to_owned(), [0, 16, 15, -1, 2]),
        (r#""" 15 30 60"#.to_owned(), [0, 16, 15, -1, 2]),
    ] {
        assert_eq!(call(&endpoint().0, &text), Ok(answer), "{text}");
    }
}

#[test]
fn long_keys_differ_in_every_byte() {
    let (endpoint, _) = endpoint();
    for end in ["a", "b"] {
        let key = "k".repeat(1_000) + end;
        assert_eq!(call(&endpoint, &format!("{key} 0 1 60")), Ok([0, 1, 0, -1, 60]));
        assert_eq!(call(&endpoint, &format!("{key} 0 1 60")), Ok([1, 1, 0, 60, 60]));
    }
}

#[test]
fn what_cannot_be_counted_is_an_error_and_spends_nothing() {
    let (endpoint, _) = endpoint();
    let (most, beyond) = (i64::MAX, "9223372036854775808");
    for (text, part) in [
        ("k -1 30 60", "max_burst must be an integer from 0"),
        ("k x 30 60", "max_burst must be an integer from 0 to 9223372036854775807, not 'x'"),
        ("k 1.5 30 60", "max_burst"),
        ("k \"\" 30 60", "max_burst"),
        ("k \"\\xff\" 30 60", "max_burst"),
        ("k 15 0 60", "count must be an integer from 1"),
        ("k 15 -30 60", "count"),
        ("k 15 30 0", "period must be an integer from 1"),
        ("k 15 30 -60", "period"),
        ("k 15 30 60 -1", "quantity must be an integer from 0"),
        ("k 15 30 60 x", "quantity"),
        ("k 15 30 60 9223372036854775808", "quantity"),
        ("k 15 1000000001 1", "more than one a nanosecond"),
        ("k 15 1 4611686019", "too long"),
        ("k 1 1 4611686018", "146 years"),
        (&format!("k {most} 30 60"), "146 years"),
        (&format!("k {beyond} 30 60"), "max_burst"),
        (&format!("k 15 {most} 1"), "more than one a nanosecond"),
        (&format!("k 15 1 {most}"), "too long"),
        (&format!("k {most} {most} {most} {most}"), "too long"),
    ] {
        let error = call(&endpoint, text).unwrap_err();
        assert!(error.starts_with("ERR ") && error.contains(part), "{text}: {error}");
    }
    assert_eq!(call(&endpoint, "k 15 30 60 0"), Ok([0, 16, 16, -1, 0]));
}

#[test]
fn a_debt_stays_when_the_quota_changes() {
    let (endpoint, clock) = endpoint();
    // A minute's worth, of an hour's.
    assert_eq!(call(&endpoint, "k 3599 1 1 60"), Ok([0, 3600, 3540, -1, 60]));
    // Under a quota of 10 s, that is 50 s too much.
    assert_eq!(call(&endpoint, "k 9 1 1"), Ok([1, 10, 0, 51, 60]));
    assert_eq!(call(&endpoint, "k 9 1 1 0"), Ok([1, 10, 0, 50, 60]));
    // Under one that is ten times slower, it is worth 6.
    assert_eq!(call(&endpoint, "k 9 1 10 0"), Ok([0, 10, 4, -1, 60]));
    clock.advance(Duration::from_secs(51));
    assert_eq!(call(&endpoint, "k 9 1 1"), Ok([0, 10, 0, -1, 10]));
}

#[test]
fn times_are_rounded_up_and_coming_back_then_succeeds() {
    let (endpoint, clock) = endpoint();
    assert_eq!(call(&endpoint, "k 0 1 2"), Ok([0, 1, 0, -1, 2]));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(call(&endpoint, "k 0 1 2"), Ok([1, 1, 0, 2, 2]));
    clock.advance(Duration::from_nanos(1_999_999_998));
    assert_eq!(call(&endpoint, "k 0 1 2"), Ok([1, 1, 0, 1, 1]));
    clock.advance(Duration::from_secs(1));
    assert_eq!(call(&endpoint, "k 0 1 2"), Ok([0, 1, 0, -1, 2]));
}

#[test]
fn a_full_table_that_denies_says_when_to_come_back() {
    let clock = ManualClock::default();
    let endpoint = endpoint_on(Memory::new(clock.clone()), 1, WhenFull::Deny);
    let mut replies = (0..).map(|key| call(&endpoint, &format!("{key} 9 1 1 5")));
    let full = replies.find(|reply| *reply != Ok([0, 10, 5, -1, 5]));
    assert_eq!(full, Some(Ok([1, 10, 10, 5, 0])));
    assert_eq!(call(&endpoint, "new 9 1 1 5"), Ok([1, 10, 10, 5, 0]));
    clock.advance(Duration::from_secs(5));
    assert_eq!(call(&endpoint, "new 9 1 1 5"), Ok([0, 10, 5, -1, 5]));
}

/// redis-cell in exact arithmetic: for each key, when its bucket is full again.
#[derive(Default)]
struct Cell(HashMap<u8, i128>);

impl Cell {
    fn throttle(&mut self, now: i128, (key, burst, count, period, quantity): Call) -> [i64; 5] {
        let seconds = |nanos: i128| nanos.div_euclid(SECOND) + i128::from(nanos % SECOND != 0);
        let interval = (i128::from(period) * SECOND + i128::from(count) - 1) / i128::from(count);
        let limit = i128::from(burst) + 1;
        let full = self.0.get(&key).copied().unwrap_or(now).max(now);
        let next = full + interval * i128::from(quantity);
        let early = next - limit * interval - now;
        let limited = early > 0;
        let full = if limited { full } else { next };
        self.0.insert(key, full);
        let retry = limited && i128::from(quantity) <= limit;
        let retry = if retry { seconds(early) } else { -1 };
        let reset = seconds(reset(full - now, limit, interval, (count, period)));
        [
            i128::from(limited),
            limit,
            ((limit * interval - (full - now)) / interval).max(0),
            retry,
            // Whoever waits for all of it has it then, and not before.
            reset.max(retry),
        ]
        .map(|number| i64::try_from(number).unwrap())
    }
}

/// The time until a bucket is full that lacks so much, as its parameters say it: without what
/// the intervals are rounded by, and without that of a burst too if that is a whole second.
fn reset(debt: i128, limit: i128, interval: i128, (count, period): (u64, u32)) -> i128 {
    let (count, period) = (i128::from(count), i128::from(period) * SECOND);
    let owed = (debt + interval - 1) / interval;
    let without = |tokens: i128| debt - tokens * (interval * count - period) / count;
    let whole = without(owed) / SECOND * SECOND;
    if whole >= without(owed + limit).max(1) { whole } else { without(owed) }
}

const SECOND: i128 = 1_000_000_000;

/// True if whole nanoseconds between two tokens keep a rate to 0.1 %.
fn is_kept(count: u64, period: u32) -> bool {
    let (count, nanos) = (i128::from(count), i128::from(period) * SECOND);
    let kept = (nanos + count - 1) / count * count;
    (kept - nanos) * 1000 <= kept
}

/// A key, and what follows it.
type Call = (u8, u32, u64, u32, u64);

fn calls() -> impl Strategy<Value = (Call, u64)> {
    let count = prop_oneof![1..20_u64, 1..1_000_000_000_u64];
    let period = prop_oneof![1..10_u32, 1..1_000_000_u32];
    let burst = prop_oneof![0..10_u32, 0..4000_u32];
    let quantity = prop_oneof![4 => Just(1), 2 => 0..12_u64, 1 => Just(u64::MAX >> 1)];
    let pause = prop_oneof![Just(0), 0..3_000_000_000_u64, Just(1_000_000_000)];
    ((0..3_u8, burst, count, period, quantity), pause)
}

proptest! {
    #[test]
    fn every_answer_is_that_of_redis_cell_in_exact_arithmetic(
        calls in proptest::collection::vec(calls(), 1..40)
    ) {
        assert_alike(calls);
    }
}

#[test]
fn answers_about_rates_that_no_interval_keeps_are_those_of_redis_cell() {
    assert_alike([((0, 0, 12_307_390, 1, 1), 0)]);
    assert_alike([((0, 0, 1, 49_599, 1), 0), ((0, 0, 624_958_890, 16_454, 1), 0)]);
}

fn assert_alike(calls: impl IntoIterator<Item = (Call, u64)>) {
    let (endpoint, clock) = endpoint();
    let mut cell = Cell::default();
    for (one, pause) in calls {
        clock.advance(Duration::from_nanos(pause));
        let (key, burst, count, period, quantity) = one;
        let text = format!("{key} {burst} {count} {period} {quantity}");
        if is_kept(count, period) {
            let expected = cell.throttle(i128::from(clock.now().as_nanos()), one);
            assert_eq!(call(&endpoint, &text), Ok(expected), "{text}");
        } else {
            assert!(call(&endpoint, &text).is_err(), "{text}");
        }
    }
}
