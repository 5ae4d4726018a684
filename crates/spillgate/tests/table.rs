//! What a table promises when it is full, restored, swept or shown the past.

use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};
use std::time::Duration;

use spillgate::algorithm::{Algorithm, AnyAlgorithm, FixedWindow, TokenBucket};
use spillgate::{Fingerprint, KeyedState, Quota, Table, Timestamp, WhenFull};

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

fn bucket(quota: &str) -> AnyAlgorithm {
    TokenBucket::new(&quota.parse().unwrap()).unwrap().into()
}

fn caller(bits: u64) -> Fingerprint {
    Fingerprint::from_bits(bits)
}

/// The smallest table: one group, so that every caller may live in every slot.
fn smallest(quota: &str, when_full: WhenFull) -> Table {
    let table = Table::with_hasher(bucket(quota), 1, when_full, KeyedState::new()).unwrap();
    assert_eq!(table.slots(), 12);
    table
}

#[test]
fn a_full_table_forgets_the_caller_that_has_spent_least() {
    let table = smallest("1/s burst 100", WhenFull::Evict);
    for bits in 1..=12 {
        assert!(table.check_at(caller(bits), 10 + bits, NOW).is_allowed());
    }
    assert_eq!(table.evictions(), 0);
    assert!(table.check_at(caller(13), 50, NOW).is_allowed());
    assert_eq!(table.evictions(), 1);
    assert_eq!(table.peek_at(caller(1), 1, NOW).remaining(), 100, "caller 1 had spent least");
    for bits in 2..=12 {
        assert_eq!(table.peek_at(caller(bits), 1, NOW).remaining(), 90 - bits);
    }
}

#[test]
fn a_full_table_can_deny_newcomers_until_the_first_slot_is_idle() {
    let table = smallest("1/s burst 100", WhenFull::Deny);
    for bits in 1..=12 {
        assert!(table.check_at(caller(bits), 10 + bits, NOW).is_allowed());
    }
    let refused = table.check_at(caller(13), 1, NOW);
    assert!(refused.is_denied() && refused.is_table_full());
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(11)));
    assert_eq!(refused.remaining(), 100);
    assert!(table.check_at(caller(5), 1, NOW).is_allowed(), "known callers are served");

    let almost = NOW + Duration::from_secs(11) - Duration::from_nanos(1);
    assert!(table.check_at(caller(13), 1, almost).is_denied());
    assert!(table.check_at(caller(13), 1, NOW + Duration::from_secs(11)).is_allowed());
    assert_eq!(table.evictions(), 0);
}

#[test]
fn a_full_table_of_quotas_that_never_refill_denies_newcomers_for_ever() {
    let table = smallest("burst 5", WhenFull::Deny);
    for bits in 1..=12 {
        assert!(table.check_at(caller(bits), 1, NOW).is_allowed());
    }
    let refused = table.check_at(caller(13), 1, NOW);
    assert!(refused.is_table_full());
    assert_eq!(refused.retry_after(), None);
}

#[test]
fn denials_and_peeks_take_no_slot() {
    let table = smallest("1/s burst 5", WhenFull::Evict);
    assert!(table.check_at(caller(1), 6, NOW).is_denied());
    assert!(table.peek_at(caller(2), 1, NOW).is_allowed());
    assert!(table.check_at(caller(3), 0, NOW).is_allowed());
    table.refund_at(caller(4), 1, NOW);
    table.reset_at(caller(5), NOW);
    assert_eq!(table.iter().count(), 0);
}

#[test]
fn idle_slots_are_used_again_without_an_eviction() {
    let table = smallest("1/s burst 1", WhenFull::Deny);
    for second in 0..1_000 {
        let now = NOW + Duration::from_secs(second);
        assert!(table.check_at(caller(second + 1), 1, now).is_allowed());
    }
    assert_eq!(table.evictions(), 0);
}

#[test]
fn a_caller_forgotten_while_idle_gains_nothing_when_time_goes_back() {
    let table = smallest("1/s burst 100", WhenFull::Evict);
    assert!(table.check_at(caller(1), 90, NOW).is_allowed());
    let later = NOW + Duration::from_secs(100);
    for bits in 2..=20 {
        assert!(table.check_at(caller(bits), 50, later).is_allowed());
    }
    // Ninety seconds of refill are undone: at least the debt it would have had.
    let earlier = NOW + Duration::from_secs(10);
    assert!(table.peek_at(caller(1), 1, earlier).remaining() <= 20);
}

#[test]
fn a_newcomer_whose_clock_is_a_little_behind_is_not_denied() {
    let table = smallest("1/s burst 1", WhenFull::Deny);
    for bits in 1..=12 {
        assert!(table.check_at(caller(bits), 1, NOW).is_allowed());
    }
    // Slots of callers that have been idle for long are reclaimed at one time, and
    // another thread calls with a clock that it read just before.
    let later = NOW + Duration::from_secs(10);
    assert!(table.check_at(caller(13), 1, later).is_allowed());
    let just_before = later - Duration::from_micros(1);
    let decision = table.check_at(caller(14), 1, just_before);
    assert!(decision.is_allowed());
    assert_eq!(decision.remaining(), 0);
}

#[test]
fn callers_of_a_fixed_window_gain_nothing_when_time_goes_back() {
    let quota: Quota = "10/min".parse().unwrap();
    let window = FixedWindow::aligned(&quota).unwrap();
    let table = Table::new(window.into(), 1).unwrap();
    let minute = |n: u64| Timestamp::from_secs(60 * n);
    assert!(table.check_at(caller(1), 10, minute(5)).is_allowed());
    for bits in 2..=20 {
        assert!(table.check_at(caller(bits), 1, minute(6)).is_allowed());
    }
    // Whatever is admitted now counts for minute 6, not for minute 5 again.
    assert!(table.check_at(caller(1), 10, minute(5)).is_allowed());
    assert!(table.check_at(caller(1), 1, minute(6)).is_denied());
}

#[test]
fn what_is_spent_survives_a_restore() {
    let quota = "1/min burst 50";
    let table = Table::new(bucket(quota), 1_000).unwrap();
    for bits in 1..=1_000 {
        assert!(table.check_at(caller(bits), 1 + bits % 50, NOW).is_allowed());
    }
    let restored = Table::new(bucket(quota), 1_000).unwrap();
    restored.restore_at(table.iter(), NOW);
    assert_eq!(restored.active_callers_at(NOW), 1_000);
    for bits in 1..=1_000 {
        assert_eq!(restored.peek_at(caller(bits), 1, NOW).remaining(), 49 - bits % 50);
    }
}

#[test]
fn a_caller_restored_twice_keeps_the_larger_debt() {
    let table = Table::new(bucket("1/min burst 50"), 10).unwrap();
    let word =
        |spent| table.algorithm().debit_up_to(table.algorithm().fresh(NOW), NOW, spent, u64::MAX);
    table.restore_at([(caller(7), word(20)), (caller(7), word(30)), (caller(7), word(10))], NOW);
    assert_eq!(table.peek_at(caller(7), 1, NOW).remaining(), 20);
    assert_eq!(table.iter().count(), 1);
}

#[test]
fn purging_empties_idle_slots_only() {
    let table = Table::new(bucket("1/s burst 100"), 100).unwrap();
    for bits in 1..=100 {
        assert!(table.check_at(caller(bits), bits, NOW).is_allowed());
    }
    let later = NOW + Duration::from_secs(40);
    assert_eq!(table.active_callers_at(later), 60);
    assert_eq!(table.purge_idle_at(later), 40);
    assert_eq!(table.iter().count(), 60);
    assert_eq!(table.purge_idle_at(later), 0);
}

#[test]
fn a_change_of_quota_keeps_what_each_caller_has_spent() {
    let table = Table::new(bucket("10/s"), 100).unwrap();
    for bits in 1..=10 {
        assert!(table.check_at(caller(bits), bits, NOW).is_allowed());
    }
    table.set_algorithm_at(bucket("5/min burst 8"), NOW);
    for bits in 1..=10 {
        let left = 8_u64.saturating_sub(bits);
        assert_eq!(table.peek_at(caller(bits), 1, NOW).remaining(), left, "caller {bits}");
    }
    assert_eq!(table.algorithm(), bucket("5/min burst 8"));
}

/// A hasher that tells nobody apart.
#[derive(Default)]
struct Constant(DefaultHasher);

impl Hasher for Constant {
    fn finish(&self) -> u64 {
        42
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }
}

#[test]
fn keys_with_one_fingerprint_share_one_allowance() {
    let hasher = BuildHasherDefault::<Constant>::new();
    let table = Table::with_hasher(bucket("1/s burst 3"), 10, WhenFull::Evict, hasher).unwrap();
    let passed = ["a", "b", "c", "d", "e"].map(|key| {
        let caller = table.fingerprint(key);
        table.check_at(caller, 1, NOW).is_allowed()
    });
    assert_eq!(passed, [true, true, true, false, false]);
}

#[test]
fn a_capacity_of_zero_or_beyond_all_bounds_is_an_error_that_says_so() {
    for (capacity, part) in
        [(0, "capacity 0"), (1 << 32, "4294967296"), (usize::MAX, "18446744073709551615")]
    {
        let error = Table::new(bucket("1/s"), capacity).unwrap_err();
        assert!(error.is_capacity());
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn quotas_that_come_with_each_call_share_one_word() {
    let quota = |text: &str| TokenBucket::new(&text.parse().unwrap()).unwrap();
    let table = Table::new(bucket("1/s"), 10).unwrap();
    let first = table.check_with_at(caller(1), quota("1/s burst 3600"), 60, NOW);
    assert!(first.is_allowed());
    assert_eq!((first.limit(), first.remaining()), (3600, 3540));
    // A minute is owed, whatever a token is worth to the next call.
    let slower = table.check_with_at(caller(1), quota("1 per 10s burst 10"), 0, NOW);
    assert_eq!((slower.limit(), slower.remaining()), (10, 4));
    let smaller = table.check_with_at(caller(1), quota("1/s burst 10"), 1, NOW);
    assert_eq!(smaller.retry_after(), Some(Duration::from_secs(51)));
    let later = NOW + Duration::from_secs(51);
    assert!(table.check_with_at(caller(1), quota("1/s burst 10"), 1, later).is_allowed());
    // Idle is idle under every quota: nothing is kept of a caller that owes nothing.
    assert_eq!(table.active_callers_at(later + Duration::from_secs(10)), 0);
}

#[test]
fn no_flood_frees_an_exhausted_caller_of_a_protecting_table_whatever_quotas_come_with_the_calls() {
    let quota = |text: &str| TokenBucket::new(&text.parse().unwrap()).unwrap();
    let floods = [
        ("1/day", 1),
        ("5/day", 1),
        ("10/s burst 100", 1),
        ("1000/s", 1),
        ("1 per 10s burst 10", 10),
        ("1/s", 1),
        // About the same burst as the second victim's, so that they share a class.
        ("1/s burst 3", 3),
        // That of which the victim is seen under as well.
        ("1/day burst 10000", 1),
    ];
    for victims in ["10/s burst 100", "1/s burst 2", "1/s", "100/h", "7/s burst 3"] {
        for (flood, cost) in floods {
            let table =
                Table::with_hasher(bucket("1/s"), 1_000, WhenFull::Protect, KeyedState::new());
            let (table, victim) = (table.unwrap(), quota(victims));
            let all = victim.limit();
            assert!(table.check_with_at(caller(1), victim, all, NOW).is_allowed());
            // Neither new keys nor looking and asking under another quota.
            for bits in 2..=8_000 {
                let _ = table.check_with_at(caller(bits), quota(flood), cost, NOW);
                let _ = table.check_with_at(caller(1), quota("1/day burst 10000"), 0, NOW);
                let _ = table.check_with_at(caller(1), quota(flood), 1_000_000_000, NOW);
            }
            let left = table.check_with_at(caller(1), victim, 0, NOW).remaining();
            assert_eq!(left, 0, "{victims} beside {flood}");
        }
    }
}

#[test]
fn a_protecting_table_evicts_whoever_has_something_left_whatever_the_quota() {
    let quota = |text: &str| TokenBucket::new(&text.parse().unwrap()).unwrap();
    let table = smallest("1/s", WhenFull::Protect);
    let (newcomers, others) = (quota("1/s"), quota("100/s burst 1000"));
    // All of the newcomer's class are exhausted, and one of another has most of its burst. (Half
    // of it may be all of a smaller burst of its class.)
    assert!(table.check_with_at(caller(1), others, 100, NOW).is_allowed());
    for bits in 2..=12 {
        assert!(table.check_with_at(caller(bits), newcomers, 1, NOW).is_allowed());
    }
    assert!(table.check_with_at(caller(13), newcomers, 1, NOW).is_allowed());
    assert_eq!(table.evictions(), 1);
    assert!(table.check_with_at(caller(14), newcomers, 1, NOW).is_table_full());
}

#[test]
fn what_was_spent_by_the_quota_of_a_table_counts_under_one_that_comes_with_a_call() {
    let quota = |text: &str| TokenBucket::new(&text.parse().unwrap()).unwrap();
    for burst in ["1/s burst 10", "1/s burst 9", "1/s burst 100"] {
        let table = Table::new(bucket("1/s burst 10"), 10).unwrap();
        table.raise_at(caller(1), |rule| rule.debit_up_to(rule.fresh(NOW), NOW, 9, 9), NOW);
        let owed = quota(burst);
        assert_eq!(table.check_with_at(caller(1), owed, 0, NOW).remaining(), owed.limit() - 9);
        assert_eq!(table.iter().count(), 1, "{burst}");
    }
}

#[test]
fn calls_at_one_instant_under_quotas_of_any_burst_spend_one_allowance() {
    let quota = |text: &str| TokenBucket::new(&text.parse().unwrap()).unwrap();
    let table = Table::new(bucket("1/s"), 10).unwrap();
    let quotas = ["10/s burst 100", "10/s burst 1600", "10/s burst 400"].map(quota);
    let spend = |thread: usize| {
        let spend = |call| table.check_with_at(caller(1), quotas[(thread + call) % 3], 1, NOW);
        (0..10_000).filter(|call| spend(*call).is_allowed()).count()
    };
    let allowed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || spend(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(allowed, 1_600, "what the largest allows, and never one more");
}

#[test]
fn a_full_table_evicts_by_the_share_of_the_burst_of_the_quotas_that_came_with_the_calls() {
    let quota = |text: &str| TokenBucket::new(&text.parse().unwrap()).unwrap();
    for when_full in [WhenFull::Deny, WhenFull::Evict] {
        let table = smallest("1/s", when_full);
        // The first owes the least time, but all of its burst.
        let busy = table.check_with_at(caller(1), quota("1000/s"), 1000, NOW);
        assert!(busy.is_allowed(), "{when_full:?}");
        for bits in 2..=12 {
            let other = table.check_with_at(caller(bits), quota("1/min burst 2"), 1, NOW);
            assert!(other.is_allowed(), "{when_full:?}: caller {bits}");
        }
        let newcomer = table.check_with_at(caller(13), quota("7/min"), 1, NOW);
        assert_eq!(newcomer.limit(), 7, "{when_full:?}");
        if when_full == WhenFull::Deny {
            assert!(newcomer.is_denied() && newcomer.is_table_full());
            assert_eq!(newcomer.retry_after(), Some(Duration::from_secs(1)));
        } else {
            assert!(newcomer.is_allowed());
            let first = table.check_with_at(caller(1), quota("1000/s"), 0, NOW);
            assert_eq!((first.remaining(), table.evictions()), (0, 1));
        }
    }
}
