//! State that moves forgives nothing: quotas that change, overrides that come and go, tiers,
//! restarts, reservations that are settled late, and debts.

use std::time::Duration;

use spillgate::{
    AlgorithmKind, Clock, KeyedState, Limiter, ManualClock, Table, Timestamp, WhenFull,
};

type TestLimiter = Limiter<str, ManualClock>;

fn builder(kind: AlgorithmKind, quota: &str) -> spillgate::LimiterBuilder<str, ManualClock> {
    Limiter::builder(quota).algorithm(kind).clock(ManualClock::default())
}

fn limiter(kind: AlgorithmKind, quota: &str) -> TestLimiter {
    builder(kind, quota).build().unwrap()
}

/// Kinds whose debts are owed until they are refilled. Windows forget them when they end.
const BUCKETS: [AlgorithmKind; 4] = [
    AlgorithmKind::TokenBucket,
    AlgorithmKind::LeakyBucket,
    AlgorithmKind::LeakyShaper,
    AlgorithmKind::IntervalBucket,
];

fn retry_after(limiter: &TestLimiter) -> Duration {
    limiter.peek("debtor").retry_after().unwrap()
}

/// A limiter whose caller owes 60 times what a minute refills.
fn with_debtor(kind: AlgorithmKind) -> TestLimiter {
    let limiter = limiter(kind, "1000/min");
    let reservation = limiter.reserve_n("debtor", 500).unwrap();
    assert_eq!(limiter.settle(reservation, 60_000).uncharged, 0);
    limiter
}

#[test]
fn a_debt_is_owed_to_the_nanosecond_wherever_it_goes_under_the_same_quota() {
    for kind in BUCKETS {
        let limiter = with_debtor(kind);
        let owed = retry_after(&limiter);
        assert!(owed >= Duration::from_secs(59 * 60), "{kind}: {owed:?}");
        let word = |limiter: &TestLimiter| limiter.peek("debtor").word();
        let before = word(&limiter);

        limiter.set_quota("1000/min").unwrap();
        assert_eq!(word(&limiter), before, "{kind}: the same quota");

        let wider = builder(kind, "1000/min").clock(limiter.clock().clone()).capacity(7);
        let rebuilt = wider.build_from(&limiter).unwrap();
        assert_eq!(word(&rebuilt), before, "{kind}: another capacity");

        limiter.set_override("debtor", "1000/min").unwrap();
        assert_eq!(word(&limiter), before, "{kind}: an override of the same quota");
        limiter.remove_override("debtor");
        assert_eq!(word(&limiter), before, "{kind}: the override is gone");

        let restored = builder(kind, "1000/min").clock(limiter.clock().clone());
        let restored = restored.hasher(*limiter.table().hasher()).build().unwrap();
        restored.restore(&limiter.save(), limiter.clock().now());
        assert_eq!(word(&restored), before, "{kind}: a restart");
    }
}

#[test]
fn a_debt_is_owed_in_tokens_under_another_quota() {
    for kind in BUCKETS {
        // 59,000 beyond a burst of 1000.
        for (quota, minutes) in [("2000/min", 28), ("500/min", 117), ("100/min", 589)] {
            let least = Duration::from_secs(60 * minutes);
            let limiter = with_debtor(kind);
            limiter.set_quota(quota).unwrap();
            let owed = retry_after(&limiter);
            assert!(owed >= least, "{kind}, {quota}: {owed:?} rather than {least:?}");

            let limiter = with_debtor(kind);
            limiter.set_override("debtor", quota).unwrap();
            assert!(retry_after(&limiter) >= least, "{kind}, override of {quota}");
            limiter.remove_override("debtor");
            assert!(retry_after(&limiter) >= Duration::from_secs(59 * 60), "{kind}");

            let limiter = with_debtor(kind);
            let new = builder(kind, quota).clock(limiter.clock().clone());
            let new = new.build_from(&limiter).unwrap();
            assert!(retry_after(&new) >= least, "{kind}, rebuilt with {quota}");
        }
    }
}

#[test]
fn an_override_that_punishes_and_goes_again_gives_nothing() {
    for kind in AlgorithmKind::ALL {
        let limiter = limiter(kind, "1000/day");
        assert!(limiter.check_n("a", 1000).is_allowed());
        limiter.set_override("a", "1/day").unwrap();
        assert!(limiter.check("a").is_denied(), "{kind}");
        // Another one in its place knows as much.
        limiter.set_override("a", "2/day").unwrap();
        let saved = limiter.save();
        limiter.remove_override("a");
        assert_eq!(limiter.peek("a").remaining(), 0, "{kind}");

        let restored = builder(kind, "1000/day").clock(limiter.clock().clone());
        let restored = restored.hasher(*limiter.table().hasher()).build().unwrap();
        restored.restore(&saved, limiter.clock().now());
        assert_eq!(restored.quota_of("a"), "2/day".parse().unwrap());
        restored.remove_override("a");
        assert_eq!(restored.peek("a").remaining(), 0, "{kind}: after a restart");
    }
}

#[test]
fn what_an_override_remembers_changes_with_the_quota() {
    let limiter = limiter(AlgorithmKind::TokenBucket, "10/day");
    assert!(limiter.check_n("a", 4).is_allowed());
    limiter.set_override("a", "1/day").unwrap();
    limiter.set_quota("100/day").unwrap();
    limiter.remove_override("a");
    assert_eq!(limiter.peek("a").remaining(), 96, "four spent stay four spent");
}

/// `gold:x`, `silver:x` and `x` are one caller, `x`, in different tiers.
struct Tiered(&'static str, &'static str);

impl std::hash::Hash for Tiered {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.1.hash(state);
    }
}

fn tiered(kind: AlgorithmKind, quotas: [&str; 3]) -> Limiter<Tiered, ManualClock> {
    let [base, gold, silver] = quotas;
    Limiter::<Tiered>::builder(base)
        .algorithm(kind)
        .tier("gold", gold)
        .tier("silver", silver)
        .tier_of(|key: &Tiered| (!key.0.is_empty()).then_some(key.0))
        .clock(ManualClock::default())
        .build()
        .unwrap()
}

fn passed(limiter: &Limiter<Tiered, ManualClock>, tier: &'static str) -> usize {
    (0..20).filter(|_| limiter.check(&Tiered(tier, "x")).is_allowed()).count()
}

#[test]
fn a_caller_has_one_allowance_whatever_its_tier() {
    for kind in AlgorithmKind::ALL {
        let limiter = tiered(kind, ["5/day", "7/day", "6/day"]);
        let passed = ["gold", "silver", ""].map(|tier| passed(&limiter, tier));
        assert_eq!(passed, [7, 0, 0], "{kind}");
        let limiter = tiered(kind, ["5/day", "5/day", "6/day"]);
        assert_eq!(["", "gold"].map(|tier| self::passed(&limiter, tier)), [5, 0], "{kind}");
        assert_eq!(limiter.active_callers(), 1, "{kind}: in one slot");
    }
}

#[test]
fn a_caller_that_changes_tiers_keeps_its_tokens() {
    let limiter =
        tiered(AlgorithmKind::TokenBucket, ["1/min burst 10", "60/min burst 60", "1/min"]);
    let left = |tier| limiter.peek(&Tiered(tier, "x")).remaining();
    assert_eq!(passed(&limiter, ""), 10);
    assert_eq!(left("gold"), 50, "not ten minutes");
    limiter.debit_n(&Tiered("gold", "x"), 50);
    assert_eq!((left("gold"), left("")), (0, 0), "not ten seconds");
    limiter.clock().advance(Duration::from_secs(60));
    // What was spent under gold has run off, and then a little of the rest.
    assert_eq!((left("gold"), left("")), (60, 0));
}

/// How many calls pass at once.
fn passes(limiter: &TestLimiter) -> usize {
    (0..1_000).filter(|_| limiter.check("x").is_allowed()).count()
}

#[test]
fn reservations_under_overrides_that_come_and_go_free_nobody() {
    for ends_by_itself in [false, true] {
        let limiter = limiter(AlgorithmKind::TokenBucket, "10/day");
        let mut passed = passes(&limiter);
        for _ in 0..20 {
            let until = limiter.clock().now() + Duration::from_secs(60);
            match ends_by_itself {
                true => limiter.set_override_until("x", "1000/min", until).unwrap(),
                false => limiter.set_override("x", "1000/min").unwrap(),
            }
            let reserved = limiter.reserve_n("x", 10).unwrap();
            limiter.clock().advance(Duration::from_secs(60));
            limiter.remove_override("x");
            limiter.settle(reserved, 0);
            passed += passes(&limiter);
        }
        assert_eq!(passed, 10, "ends by itself: {ends_by_itself}");
    }
}

#[test]
fn what_was_reserved_under_a_larger_quota_is_not_given_back_under_a_smaller() {
    let limiter = limiter(AlgorithmKind::TokenBucket, "1000/min");
    assert!(limiter.check_n("x", 10).is_allowed());
    let reserved = limiter.reserve_n("x", 990).unwrap();
    limiter.set_quota("10/min").unwrap();
    assert_eq!(limiter.peek("x").remaining(), 0);
    limiter.settle(reserved, 0);
    assert_eq!(limiter.peek("x").remaining(), 0, "ten are spent and not reserved");
}

#[test]
fn a_quota_that_is_lowered_and_restored_refunds_nobody() {
    for kind in AlgorithmKind::ALL {
        let limiter = limiter(kind, "100/day");
        assert!((0..60).all(|_| limiter.check("x").is_allowed()), "{kind}");
        limiter.set_quota("10/day").unwrap();
        assert_eq!(limiter.peek("x").remaining(), 0, "{kind}");
        limiter.set_quota("100/day").unwrap();
        assert_eq!(limiter.peek("x").remaining(), 40, "{kind}");
    }
}

#[test]
fn a_key_of_gold_buys_no_calls_without_it() {
    let limiter = tiered(AlgorithmKind::TokenBucket, ["100/day", "100/s", "1/s"]);
    let passed = |tier| (0..200).filter(|_| limiter.check(&Tiered(tier, "x")).is_allowed()).count();
    assert_eq!((passed("gold"), passed("")), (100, 0));
}

#[test]
fn quotas_of_a_limiter_with_tiers_that_are_lowered_forgive_nobody() {
    let limiter = tiered(AlgorithmKind::TokenBucket, ["100/s", "100/s burst 200", "1/s"]);
    let left = |tier| limiter.peek(&Tiered(tier, "x")).remaining();
    assert!(limiter.check_n(&Tiered("", "x"), 100).is_allowed());
    limiter.set_quotas("100/day".parse().unwrap(), [("gold", "100/h".parse().unwrap())]).unwrap();
    assert_eq!((left(""), left("gold")), (0, 0));
}

#[test]
fn callers_of_a_slow_tier_with_much_left_free_nobody_of_a_fast_one() {
    let limiter = Limiter::<Tiered>::builder("10/s burst 100")
        .tier("free", "5/day")
        .tier_of(|key: &Tiered| (!key.0.is_empty()).then_some(key.0))
        .capacity(1_000)
        .clock(ManualClock::default())
        .build()
        .unwrap();
    let keys: Vec<String> = (0..5_000).map(|number| format!("flood {number}")).collect();
    let keys: Vec<&'static str> = keys.into_iter().map(|key| &*key.leak()).collect();
    assert!(limiter.check_n(&Tiered("", "x"), 100).is_allowed());
    for key in keys {
        let _ = limiter.check(&Tiered("free", key));
        assert!(limiter.check(&Tiered("", "x")).is_denied(), "{key}");
    }
}

#[test]
fn a_newcomer_evicts_whoever_has_something_left_in_any_tier_of_a_protecting_limiter() {
    let limiter = Limiter::<Tiered>::builder("1/s burst 1")
        .tier("gold", "100/s burst 1000")
        .tier_of(|key: &Tiered| (!key.0.is_empty()).then_some(key.0))
        .capacity(1)
        .when_full(WhenFull::Protect)
        .clock(ManualClock::default())
        .build()
        .unwrap();
    let slots = limiter.table().slots();
    let keys: Vec<String> = (0..slots + 2).map(|number| format!("key {number}")).collect();
    let keys: Vec<&'static str> = keys.into_iter().map(|key| &*key.leak()).collect();
    assert!(limiter.check_n(&Tiered("gold", keys[0]), 500).is_allowed());
    for key in &keys[1..slots] {
        assert!(limiter.check(&Tiered("", key)).is_allowed());
    }
    // Almost idle, but exhausted, and so of the smallest share.
    limiter.clock().advance(Duration::from_millis(900));
    assert!(limiter.check(&Tiered("", keys[slots])).is_allowed());
    assert!(limiter.check(&Tiered("", keys[slots + 1])).is_table_full());
    assert_eq!(limiter.evictions(), 1);
}

#[test]
fn a_caller_in_a_tier_is_seen_in_the_table_itself() {
    let limiter = tiered(AlgorithmKind::TokenBucket, ["10/h", "20/h", "30/h"]);
    assert!(limiter.check_n(&Tiered("gold", "x"), 7).is_allowed());
    let (table, now) = (limiter.table(), limiter.clock().now());
    let caller = limiter.fingerprint(&Tiered("gold", "x"));
    assert_eq!(table.peek_at(caller, 0, now).remaining(), 13);
    table.debit_at(caller, 3, now);
    assert_eq!(limiter.peek(&Tiered("gold", "x")).remaining(), 10);
    table.reset_at(caller, now);
    assert_eq!(limiter.peek(&Tiered("gold", "x")).remaining(), 20);
}

#[test]
fn callers_who_call_while_they_are_reset_are_in_one_place() {
    let limiter = tiered(AlgorithmKind::TokenBucket, ["10/h", "20/h", "30/h"]);
    std::thread::scope(|scope| {
        for tier in ["", "gold", "silver"] {
            let limiter = &limiter;
            scope.spawn(move || {
                for _ in 0..20_000 {
                    let _ = limiter.check(&Tiered(tier, "x"));
                }
            });
        }
        (0..20_000).for_each(|_| limiter.reset(&Tiered("", "x")));
    });
    limiter.reset(&Tiered("", "x"));
    assert_eq!(passed(&limiter, ""), 10);
}

#[test]
fn callers_whose_quota_has_changed_are_still_active() {
    let limiter = limiter(AlgorithmKind::TokenBucket, "10/h");
    for key in ["a", "b", "c"] {
        assert!(limiter.check(key).is_allowed());
    }
    limiter.set_quota("20/h").unwrap();
    assert_eq!(limiter.active_callers(), 3);
    limiter.set_override("c", "1/s").unwrap();
    assert_eq!(limiter.active_callers(), 2, "without those who have a quota of their own");
}

#[test]
fn debts_of_a_window_that_the_first_call_begins_are_cut_by_no_quota_in_between() {
    let limiter = limiter(AlgorithmKind::FirstHitWindow, "10/h");
    limiter.debit_n("x", 30);
    limiter.clock().advance(Duration::from_secs(1_800));
    limiter.set_quota("1/h").unwrap();
    limiter.set_quota("25/h").unwrap();
    assert_eq!(limiter.peek("x").remaining(), 0);
    // Words of another quota begin a window a little later at most.
    limiter.clock().advance(Duration::from_secs(1_801));
    assert_eq!(limiter.peek("x").remaining(), 25, "the window has ended, and the debt with it");
    limiter.set_quota("20/h").unwrap();
    assert_eq!(limiter.peek("x").remaining(), 20, "for every quota");
}

#[test]
fn the_quota_of_a_tier_changes_for_those_who_are_in_it() {
    for kind in AlgorithmKind::ALL {
        let limiter = tiered(kind, ["5/day", "7/day", "6/day"]);
        assert_eq!(passed(&limiter, "gold"), 7);
        limiter.set_tier_quota("gold", "7000/day").unwrap();
        limiter.set_tier_quota("gold", "7/day").unwrap();
        assert_eq!(passed(&limiter, "gold"), 0, "{kind}: there and back");
        limiter.set_quota("6/day").unwrap();
        assert_eq!(passed(&limiter, ""), 0, "{kind}");
    }
}

#[test]
fn reservations_settled_late_give_back_nothing_that_was_refilled() {
    for kind in AlgorithmKind::ALL {
        let limiter = limiter(kind, "10/min");
        let mut open = Vec::new();
        for _ in 0..20 {
            open.extend((0..10).map_while(|_| limiter.reserve_n("a", 1).ok()));
            limiter.clock().advance(Duration::from_secs(60));
        }
        assert!(open.len() >= 100, "{kind}: {} are open", open.len());
        open.extend((0..10).map_while(|_| limiter.reserve_n("a", 1).ok()));
        for reservation in open {
            limiter.settle(reservation, 0);
        }
        let passed = (0..500).filter(|_| limiter.check("a").is_allowed()).count();
        assert!(passed <= 10, "{kind}: {passed} at one instant");
    }
}

#[test]
fn a_reservation_settled_at_once_gives_back_all_that_it_did_not_use() {
    for kind in AlgorithmKind::ALL {
        let limiter = limiter(kind, "10/min");
        let reservation = limiter.reserve_n("a", 9).unwrap();
        let settled = limiter.settle(reservation, 2);
        assert_eq!(settled.left.remaining(), 8, "{kind}");
        assert_eq!(settled.uncharged, 0, "{kind}");
    }
}

#[test]
fn a_window_gets_back_only_what_was_charged_in_it() {
    for kind in [AlgorithmKind::FixedWindow, AlgorithmKind::FirstHitWindow] {
        let limiter = limiter(kind, "10/min");
        let reservation = limiter.reserve_n("a", 5).unwrap();
        limiter.clock().advance(Duration::from_secs(90));
        assert!(limiter.check_n("a", 7).is_allowed());
        limiter.settle(reservation, 0);
        assert_eq!(limiter.peek("a").remaining(), 3, "{kind}");
    }
    // A sliding window weighs the one before: what it gives back there weighs no more.
    let limiter = limiter(AlgorithmKind::SlidingWindow, "10/min");
    let start = limiter.clock().now().as_nanos() / 60_000_000_000 * 60;
    limiter.clock().set(Timestamp::from_secs(start + 60));
    let reservation = limiter.reserve_n("a", 10).unwrap();
    limiter.clock().advance(Duration::from_secs(90));
    assert_eq!(limiter.peek("a").remaining(), 5);
    limiter.settle(reservation, 0);
    assert_eq!(limiter.peek("a").remaining(), 10);
}

#[test]
fn a_reservation_from_before_a_change_of_quota_gives_back_no_more_than_is_owed() {
    for kind in AlgorithmKind::ALL {
        for quota in ["1/min", "10000/min"] {
            let limiter = limiter(kind, "10/min");
            let reservation = limiter.reserve_n("a", 10).unwrap();
            limiter.set_quota(quota).unwrap();
            limiter.clock().advance(Duration::from_secs(59));
            limiter.set_quota("10/min").unwrap();
            let before = limiter.peek("a").remaining();
            limiter.settle(reservation, 0);
            let gained = limiter.peek("a").remaining() - before;
            assert!(before + gained <= 10, "{kind}, {quota}: {before} and {gained}");
        }
    }
}

#[test]
fn a_debt_has_a_bound_and_what_is_beyond_it_is_told() {
    for kind in AlgorithmKind::ALL {
        let limiter = limiter(kind, "1000/min");
        let reservation = limiter.reserve_n("a", 500).unwrap();
        let settled = limiter.settle(reservation, u64::MAX);
        let most = limiter.peek("a").reset_after().unwrap();
        let charged = u64::MAX - 500 - settled.uncharged;
        assert!(settled.uncharged > 0 && charged > 0, "{kind}");
        // A day's refill, or as much as a window can count, which it forgets anyway.
        assert!(most <= Duration::from_secs(24 * 60 * 60 + 120), "{kind}: {most:?}");
        if BUCKETS.contains(&kind) {
            assert_eq!(charged + 500, 1_000 + 1_440_000, "{kind}");
        }
        assert_eq!(limiter.debit_n("a", 1).uncharged, 1, "{kind}: not one more");
        let day = Duration::from_secs(25 * 60 * 60);
        limiter.clock().advance(day);
        assert!(limiter.check("a").is_allowed(), "{kind}: nobody is locked out for ever");
    }
    // Ten bursts, if a day refills less.
    let limiter = limiter(AlgorithmKind::TokenBucket, "1/day burst 20");
    assert_eq!(limiter.debit_n("a", 1_000).uncharged, 1_000 - 220);
}

#[test]
fn a_bound_of_ones_own_holds_and_one_that_no_word_can_tell_is_refused() {
    for kind in AlgorithmKind::ALL {
        let limiter = builder(kind, "10/min").max_debt(5).build().unwrap();
        assert_eq!(limiter.debit_n("a", 100).uncharged, 85, "{kind}");
        let zero = builder(kind, "10/min").max_debt(0).build().unwrap();
        assert_eq!(zero.debit_n("a", 11).uncharged, 1, "{kind}");
        let error = builder(kind, "10/min").max_debt(u64::MAX).build().unwrap_err();
        assert!(error.is_algorithm() && error.to_string().contains("at most"), "{error}");
    }
}

#[test]
fn a_full_table_answers_at_the_end_of_time() {
    for when_full in [WhenFull::Deny, WhenFull::Protect] {
        for kind in AlgorithmKind::ALL {
            let algorithm =
                kind.with_quota(&"1/h".parse().unwrap(), spillgate::Start::Full, Timestamp::ZERO);
            let table =
                Table::with_hasher(algorithm.unwrap(), 1, when_full, KeyedState::new()).unwrap();
            let callers = 1..=1_000_u64;
            let denied = callers.filter(|caller| {
                let caller = spillgate::Fingerprint::from_bits(caller << 32);
                table.check_at(caller, 1, Timestamp::MAX).is_denied()
            });
            assert!(denied.count() > 900, "{kind}, {when_full:?}");
        }
    }
}

#[test]
fn a_reservation_cancels_its_own_call_and_no_other() {
    for kind in AlgorithmKind::ALL {
        let limiter = limiter(kind, "10/min");
        let old = limiter.reserve_n("a", 1).unwrap();
        let word = old.decision().word();
        assert!(limiter.cancel(old), "{kind}");
        // Another call leaves the same word. The old one is used up: it cannot be given again.
        assert_eq!(limiter.check("a").word(), word, "{kind}");
    }
}

#[test]
fn rates_that_whole_nanoseconds_cannot_keep_are_refused() {
    use spillgate::Quota;
    for (rate, instead) in
        [(3_000_000, "1 per 334 ns"), (999_999_999, "1 per 2 ns"), (600_000_000, "1 per 2 ns")]
    {
        for kind in [AlgorithmKind::TokenBucket, AlgorithmKind::LeakyBucket] {
            let quota = Quota::per_second(rate).burst(50);
            let error = Limiter::<str>::builder(quota).algorithm(kind).build().unwrap_err();
            assert!(error.to_string().contains(instead), "{kind}, {rate}/s: {error}");
        }
        let window = Quota::per_second(rate);
        let builder = Limiter::<str>::builder(window).algorithm(AlgorithmKind::FixedWindow);
        assert!(builder.build().is_ok(), "{rate}/s: a window counts them one by one");
    }
    for rate in [999_983, 1_000_000, 1_500_000, 2_000_000, 125_000_000, 1_000_000_000] {
        let limiter = Limiter::<str>::builder(Quota::per_second(rate).burst(1));
        let clock = ManualClock::default();
        let limiter = limiter.clock(clock.clone()).build().unwrap();
        // A thousand tokens one after the other take a thousandth of rate's second, and 0.1 %.
        let begin = clock.now();
        let calls = if rate > 1_000_000 { 10_000 } else { 1_000 };
        for _ in 0..calls {
            assert!(limiter.check("a").is_allowed(), "{rate}/s");
            clock.advance(limiter.peek("a").retry_after().unwrap());
        }
        let taken = clock.now().since(begin).as_nanos();
        let exact = calls * 1_000_000_000 / u128::from(rate);
        assert!(taken >= exact && taken * 1_000 <= exact * 1_001 + 1_000, "{rate}/s: {taken} ns");
    }
}

#[test]
fn a_deep_debt_of_one_tier_is_owed_as_long_when_another_tier_changes() {
    let limiter = tiered(AlgorithmKind::IntervalBucket, ["100/min", "50/min", "10/min"]);
    let owed = || limiter.peek(&Tiered("", "x")).retry_after().unwrap();
    limiter.debit_n(&Tiered("", "x"), 10_100);
    let before = owed();
    assert!(before >= Duration::from_secs(100 * 60), "{before:?}");
    limiter.set_tier_quota("gold", "51/min").unwrap();
    assert!(owed() >= before, "{:?} rather than {before:?}", owed());
    // What is left after the last refill is refilled a period sooner.
    limiter.set_quota("101/min").unwrap();
    let least = before - Duration::from_secs(60);
    assert!(owed() >= least, "{:?} rather than {least:?}", owed());
    // Nor is it passed by in another tier.
    for tier in ["gold", "silver", ""] {
        assert_eq!(passed(&limiter, tier), 0, "{tier}");
    }
}

#[test]
fn refills_larger_than_a_word_can_count_neither_hide_a_debt_nor_make_it_endless() {
    // Thirty is all that the count can tell.
    let bucket = |quota: &str| limiter(AlgorithmKind::IntervalBucket, quota);
    let minutes = |limiter: &TestLimiter| retry_after(limiter).as_secs() / 60;
    let limiter = bucket("1000/min burst 10");
    assert_eq!(limiter.debit_n("debtor", 1_000_000).uncharged, 0, "all of it was charged");
    assert!((999..=1_002).contains(&minutes(&limiter)), "{} min", minutes(&limiter));
    // A day's refill is all that anyone owes.
    for _ in 0..5 {
        limiter.debit_n("debtor", 1_000_000);
    }
    assert!((1_440..=1_443).contains(&minutes(&limiter)), "{} min", minutes(&limiter));
    for (quota, least) in [("1000/min burst 5000", 1_434), ("1000/h burst 10", 1_440 * 60)] {
        let limiter = bucket("1000/min burst 10");
        limiter.debit_n("debtor", u64::MAX);
        limiter.set_quota(quota).unwrap();
        assert!(minutes(&limiter) >= least, "{quota}: {} min", minutes(&limiter));
    }
    // Of a tier with a smaller burst, nothing is left that another could spend.
    let limiter =
        tiered(AlgorithmKind::IntervalBucket, ["10/min", "24/min burst 5", "10/min burst 10"]);
    limiter.debit_n(&Tiered("gold", "x"), 105);
    for tier in ["silver", "", "gold"] {
        assert_eq!(passed(&limiter, tier), 0, "{tier}");
    }
}

#[test]
fn a_reservation_gives_back_no_more_time_than_it_took_when_its_tier_becomes_slower() {
    let limiter = tiered(AlgorithmKind::TokenBucket, ["60/min", "6000/min", "1/min"]);
    let gold = Tiered("gold", "x");
    assert!(limiter.check_n(&gold, 5_940).is_allowed());
    let reservation = limiter.reserve_n(&gold, 60).unwrap();
    limiter.set_tier_quota("gold", "60/min").unwrap();
    limiter.settle(reservation, 0);
    assert_eq!(passed(&limiter, "gold"), 0, "60 tokens were 0.6 s of 60");
}

#[test]
fn a_table_with_tiers_may_be_given_another_rule_by_itself() {
    let limiter = tiered(AlgorithmKind::TokenBucket, ["5/day", "7/day", "6/day"]);
    let other = AlgorithmKind::TokenBucket.with_quota(
        &"9/day".parse().unwrap(),
        spillgate::Start::Full,
        Timestamp::ZERO,
    );
    limiter.table().set_algorithm_at(other.unwrap(), limiter.clock().now());
    assert_eq!(passed(&limiter, "gold"), 7, "the tiers are what they were");
}

#[test]
fn what_was_saved_of_a_rate_that_is_refused_by_now_is_read() {
    let limiter = limiter(AlgorithmKind::TokenBucket, "1 per 334 ns burst 50");
    limiter.debit_n("debtor", 1_000_000);
    let owed = retry_after(&limiter);
    let mut saved = limiter.save();
    // As it was written before.
    saved.tables[0].quota = spillgate::Quota::per_second(3_000_000).burst(50).build().unwrap();
    let restored = builder(AlgorithmKind::TokenBucket, "1 per 334 ns burst 50")
        .clock(limiter.clock().clone())
        .hasher(*limiter.table().hasher())
        .build()
        .unwrap();
    restored.restore(&saved, limiter.clock().now());
    assert_eq!(retry_after(&restored), owed);
}
