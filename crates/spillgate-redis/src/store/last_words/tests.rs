use spillgate::{AlgorithmKind, Start};

use super::*;

const NAME: Name = Name::from_bytes([7; 16]);
const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const START: Timestamp = Timestamp::from_secs(77);

fn effective(quota: &str) -> EffectiveQuota {
    let terms = Terms::new(AlgorithmKind::TokenBucket, quota.parse().unwrap());
    EffectiveQuota::of(terms).unwrap()
}

/// A caller that has just spent all it had.
fn denied(effective: &EffectiveQuota, sent: Timestamp) -> Arc<LastWords> {
    let words = Arc::new(LastWords::new(100));
    let word = effective.algorithm.spend(effective.fresh(None), NOW, effective.terms.quota.burst());
    words.record(
        NAME,
        effective,
        word.unwrap(),
        ClockSample { now: NOW, sent, received: sent },
        true,
    );
    words
}

/// Begins a call that stays under way if it is not denied.
fn is_denied(
    words: &Arc<LastWords>,
    effective: &EffectiveQuota,
    cost: u64,
    local: Timestamp,
) -> bool {
    let begun = words.begin(NAME, effective, cost, local);
    begun.map(|in_flight| in_flight.map(InFlight::answered)).is_err()
}

#[test]
fn a_denial_is_remembered_until_the_word_would_let_the_call_pass() {
    let (effective, start) = (effective("10/s"), START);
    let words = denied(&effective, start);
    assert!(is_denied(&words, &effective, 1, start + Duration::from_millis(99)));
    assert!(!is_denied(&words, &effective, 1, start + Duration::from_millis(100)));
}

#[test]
fn only_one_call_asks_for_a_token() {
    let (effective, start) = (effective("10/s"), START);
    let words = denied(&effective, start);
    let refilled = start + Duration::from_millis(100);
    assert!(!is_denied(&words, &effective, 1, refilled));
    assert!(is_denied(&words, &effective, 1, refilled));
    assert!(!is_denied(&words, &effective, 1, refilled + Duration::from_millis(100)));
}

#[test]
fn a_call_that_ends_without_an_answer_denies_nobody() {
    let (effective, start) = (effective("10/s"), START);
    let words = denied(&effective, start);
    let refilled = start + Duration::from_millis(100);
    let given_up = words.begin(NAME, &effective, 1, refilled);
    assert!(is_denied(&words, &effective, 1, refilled), "the token is asked for");
    drop(given_up);
    assert!(!is_denied(&words, &effective, 1, refilled));
}

#[test]
fn after_a_second_one_call_asks_and_others_go_by_the_word_until_it_is_answered() {
    let (effective, start) = (effective("1/h"), START);
    let words = denied(&effective, start);
    let over = start + Duration::from_secs(1);
    assert!(is_denied(&words, &effective, 1, over - Duration::from_nanos(1)));
    assert!(!is_denied(&words, &effective, 1, over));
    assert!(is_denied(&words, &effective, 1, over + Duration::from_millis(50)));
    // The answer never came.
    assert!(!is_denied(&words, &effective, 1, over + Duration::from_secs(1)));
}

#[test]
fn a_word_under_other_terms_tells_nothing() {
    let (old, new, start) = (effective("1/h"), effective("2/h"), START);
    let words = denied(&old, start);
    assert!(!is_denied(&words, &new, 1, start));
    assert!(is_denied(&words, &old, 1, start));
}

#[test]
fn an_answer_that_was_overtaken_is_not_believed() {
    let (effective, start) = (effective("1/h"), START);
    let words = denied(&effective, start);
    let earlier = ClockSample { now: NOW - Duration::from_millis(1), sent: start, received: start };
    words.record(NAME, &effective, effective.fresh(None), earlier, false);
    assert!(is_denied(&words, &effective, 1, start));
    let before = start - Duration::from_nanos(1);
    let same = ClockSample { now: NOW, sent: before, received: start };
    words.record(NAME, &effective, effective.fresh(None), same, false);
    assert!(is_denied(&words, &effective, 1, start));
    words.record(
        NAME,
        &effective,
        effective.fresh(None),
        ClockSample { now: NOW + Duration::from_nanos(1), sent: start, received: start },
        false,
    );
    assert!(!is_denied(&words, &effective, 1, start));
}

#[test]
fn redis_whose_clock_was_set_back_is_believed() {
    let (effective, start) = (effective("1/h"), START);
    let words = denied(&effective, start);
    let back = ClockSample { now: NOW - Duration::from_secs(1), sent: start, received: start };
    words.record(NAME, &effective, effective.fresh(None), back, false);
    assert!(!is_denied(&words, &effective, 1, start));
}

#[test]
fn nobody_is_denied_by_a_word_that_has_not_denied_or_is_in_doubt() {
    let (effective, start) = (effective("1/h"), START);
    let words = Arc::new(LastWords::new(100));
    let sample = ClockSample { now: NOW, sent: start, received: start };
    let spent = effective.algorithm.spend(effective.fresh(None), NOW, 1).unwrap();
    words.record(NAME, &effective, spent, sample, false);
    assert!(!is_denied(&words, &effective, 1, start));
    assert_eq!(words.last(NAME).unwrap().word, spent);

    let words = denied(&effective, start);
    words.invalidate(NAME);
    assert!(!is_denied(&words, &effective, 1, start));
    assert_eq!(words.last(NAME).unwrap().word, spent);
    words.forget(NAME);
    assert!(words.last(NAME).is_none());
}

#[test]
fn what_a_call_asks_for_is_no_word_of_redis() {
    let (effective, start) = (effective("10/s"), START);
    let words = denied(&effective, start);
    let before = words.last(NAME).unwrap().word;
    assert!(!is_denied(&words, &effective, 1, start + Duration::from_millis(100)));
    assert_eq!(words.last(NAME).unwrap().word, before);
}

#[test]
fn what_is_on_its_way_counts_until_it_is_answered() {
    let (effective, start) = (effective("10/h"), START);
    let words = Arc::new(LastWords::new(100));
    assert!(words.begin(NAME, &effective, 3, start).unwrap_or(None).is_none(), "never sample");
    let sample = ClockSample { now: NOW, sent: start, received: start };
    words.record(NAME, &effective, effective.fresh(None), sample, false);
    let left = || {
        let last = words.last(NAME).unwrap();
        let word = last.in_share(&effective, &effective.algorithm, NonZeroU32::MIN, start);
        effective.algorithm.remaining(word, start)
    };
    let asked = words.begin(NAME, &effective, 3, start).unwrap();
    let taken = words.track(NAME, 2);
    assert_eq!(left(), 5);
    words.record(NAME, &effective, effective.fresh(None), sample, false);
    assert_eq!(left(), 5);
    drop(asked);
    assert_eq!(left(), 8);
    drop(taken);
    assert_eq!(left(), 10);
}

/// What is left of a share of a quota, of which so much is spent, some time later.
fn left_of_share(kind: AlgorithmKind, [quota, share]: [&str; 2], spent: u64, ms: u64) -> u64 {
    let terms = Terms::new(kind, quota.parse().unwrap());
    let effective = EffectiveQuota::of(terms).unwrap();
    let words = Arc::new(LastWords::new(100));
    let word = effective.algorithm.spend(effective.fresh(None), NOW, spent).unwrap();
    words.record(
        NAME,
        &effective,
        word,
        ClockSample { now: NOW, sent: START, received: START },
        false,
    );
    let start = (Start::Full, Timestamp::ZERO);
    let share = kind.with_quota(&share.parse().unwrap(), start.0, start.1).unwrap();
    let local = START + Duration::from_millis(ms);
    let nodes = NonZeroU32::new(4).unwrap();
    let word = words.last(NAME).unwrap().in_share(&effective, &share, nodes, local);
    share.remaining(word, local)
}

#[test]
fn a_bucket_has_spent_the_same_part_of_its_share_and_refills_at_its_pace() {
    for kind in [AlgorithmKind::TokenBucket, AlgorithmKind::LeakyBucket] {
        let left = |spent, ms| left_of_share(kind, ["40/s", "10/s"], spent, ms);
        assert_eq!([left(0, 0), left(20, 0), left(40, 0)], [10, 5, 0]);
        assert_eq!([left(1, 0), left(4, 0), left(5, 0)], [9, 9, 8], "rounded up");
        assert_eq!([left(40, 99), left(40, 100), left(40, 1000)], [0, 1, 10]);
    }
}

#[test]
fn a_count_is_divided_and_rounded_up_and_ends_with_its_window() {
    use AlgorithmKind as Kind;
    for kind in [Kind::FixedWindow, Kind::SlidingWindow, Kind::IntervalBucket] {
        let left = |spent, ms| left_of_share(kind, ["40/min", "10/min"], spent, ms);
        assert_eq!([left(0, 0), left(1, 0), left(4, 0), left(5, 0)], [10, 9, 9, 8], "{kind}");
        assert_eq!([left(20, 0), left(40, 0), left(40, 120_000)], [5, 0, 10], "{kind}");
    }
    let left = |spent| left_of_share(Kind::TokenBucket, ["burst 40", "burst 10"], spent, 1);
    assert_eq!([left(0), left(1), left(39), left(40)], [10, 9, 0, 0]);
}

#[test]
fn what_was_spent_under_another_quota_counts_in_tokens() {
    let left = |[spent, next]: [&str; 2]| {
        let next = effective(next);
        let words = denied(&effective(spent), START);
        let word =
            words.last(NAME).unwrap().in_share(&next, &next.algorithm, NonZeroU32::MIN, START);
        next.algorithm.remaining(word, START)
    };
    assert_eq!([left(["100/s", "100/day"]), left(["100/day", "100/s"])], [0, 0]);
    assert_eq!([left(["10/s", "100/day"]), left(["10/day", "100/s"])], [90, 90]);
}
