//! An override that ends by itself equals one that is removed just then.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use spillgate::{AlgorithmKind, Clock, Limiter, ManualClock, Quota, Saved, Timestamp, Verdict};

type TestLimiter = Limiter<str, ManualClock>;

const KEYS: [&str; 3] = ["a", "b", "gold"];
const QUOTAS: [&str; 4] = ["10/s", "1/s burst 4", "100/min", "3/min"];

#[derive(Clone, Debug)]
enum Step {
    Check(usize, u64),
    Debit(usize, u64),
    Refund(usize, u64),
    Reset(usize),
    SetQuota(usize),
    /// A key, a quota, and for how many milliseconds.
    Override(usize, usize, Option<u64>),
    Remove(usize),
    Advance(u64),
    /// Saves, waits so many milliseconds, and restores into a new limiter.
    Restart(u64),
    Rebuild,
}

fn step() -> impl Strategy<Value = Step> {
    let (key, quota, amount) = (0..KEYS.len(), 0..QUOTAS.len(), 0_u64..6);
    let time = prop_oneof![Just(None), (0_u64..20_000).prop_map(Some)];
    prop_oneof![
        8 => (key.clone(), amount.clone()).prop_map(|(key, cost)| Step::Check(key, cost)),
        1 => (key.clone(), amount.clone()).prop_map(|(key, cost)| Step::Debit(key, cost)),
        1 => (key.clone(), amount).prop_map(|(key, cost)| Step::Refund(key, cost)),
        1 => key.clone().prop_map(Step::Reset),
        1 => quota.clone().prop_map(Step::SetQuota),
        3 => (key.clone(), quota, time).prop_map(|(key, quota, time)| {
            Step::Override(key, quota, time)
        }),
        1 => key.prop_map(Step::Remove),
        4 => (0_u64..8_000).prop_map(Step::Advance),
        1 => (0_u64..8_000).prop_map(Step::Restart),
        1 => Just(Step::Rebuild),
    ]
}

fn builder(
    kind: AlgorithmKind,
    quota: Quota,
    has_tiers: bool,
    clock: &ManualClock,
) -> spillgate::LimiterBuilder<str, ManualClock> {
    let builder = Limiter::builder(quota).algorithm(kind).clock(clock.clone()).capacity(10);
    if !has_tiers {
        return builder;
    }
    // Windows of one limiter have one period.
    builder.tier("gold", "40/s").tier_of(|key: &str| (key == "gold").then_some("gold"))
}

/// One limiter whose overrides end by themselves, and one whose overrides are removed.
struct Twins {
    ends: TestLimiter,
    removes: TestLimiter,
    kind: AlgorithmKind,
    has_tiers: bool,
    /// Each key's override in the second one.
    until: [Option<Timestamp>; KEYS.len()],
}

impl Twins {
    fn new(kind: AlgorithmKind, has_tiers: bool) -> Self {
        let quota = Quota::per_second(10).build().unwrap();
        let limiter = || builder(kind, quota, has_tiers, &ManualClock::default()).build().unwrap();
        Self { ends: limiter(), removes: limiter(), kind, has_tiers, until: [None; KEYS.len()] }
    }

    fn now(&self) -> Timestamp {
        self.ends.clock().now()
    }

    fn remove_ended(&mut self) {
        let now = self.removes.clock().now();
        for (key, until) in KEYS.iter().zip(&mut self.until) {
            if until.is_some_and(|until| until <= now) {
                *until = None;
                self.removes.remove_override(key);
            }
        }
    }

    /// The second one stops at each end on the way.
    fn advance(&mut self, millis: u64, restarts: bool) {
        self.ends.clock().advance(Duration::from_millis(millis));
        let then = self.now();
        loop {
            let next = self.until.iter().flatten().min().copied().filter(|next| *next <= then);
            let saved = self.removes.save();
            self.removes.clock().set(next.unwrap_or(then));
            if restarts {
                self.removes = self.restored(&self.removes, &saved);
            }
            self.remove_ended();
            if next.is_none() {
                return;
            }
        }
    }

    /// Another limiter in the place of one.
    fn restored(&self, old: &TestLimiter, saved: &Saved) -> TestLimiter {
        let new = builder(self.kind, old.quota(), self.has_tiers, old.clock());
        let new = new.hasher(*old.table().hasher()).build().unwrap();
        new.restore(saved, old.clock().now());
        new
    }

    fn set_override(&mut self, key: usize, quota: &str, millis: Option<u64>) {
        let until = millis.map(|millis| self.now() + Duration::from_millis(millis));
        let result = match until {
            Some(until) => self.ends.set_override_until(KEYS[key], quota, until),
            None => self.ends.set_override(KEYS[key], quota),
        };
        assert_eq!(self.removes.set_override(KEYS[key], quota), result);
        if result.is_ok() {
            self.until[key] = until;
            self.remove_ended();
        }
    }

    fn step(&mut self, step: &Step) {
        let both = [&self.ends, &self.removes];
        match *step {
            Step::Check(key, cost) => {
                let [one, other] = both.map(|limiter| limiter.check_n(KEYS[key], cost));
                assert_eq!((one.verdict(), one.wait()), (other.verdict(), other.wait()));
            }
            Step::Debit(key, cost) => {
                let [one, other] = both.map(|limiter| limiter.debit_n(KEYS[key], cost).uncharged);
                assert_eq!(one, other);
            }
            Step::Refund(key, cost) => both.iter().for_each(|it| it.refund_n(KEYS[key], cost)),
            Step::Reset(key) => both.iter().for_each(|it| it.reset(KEYS[key])),
            Step::SetQuota(quota) => {
                let [one, other] = both.map(|limiter| limiter.set_quota(QUOTAS[quota]));
                assert_eq!(one, other);
            }
            Step::Override(key, quota, millis) => self.set_override(key, QUOTAS[quota], millis),
            Step::Remove(key) => {
                let [one, other] = both.map(|limiter| limiter.remove_override(KEYS[key]));
                assert_eq!(one, other);
                self.until[key] = None;
            }
            Step::Advance(millis) => self.advance(millis, false),
            // Whose tier is not known while nobody calls: see `expire_all`.
            Step::Restart(millis) => self.restart(if self.has_tiers { 0 } else { millis }),
            Step::Rebuild => {
                for limiter in [&mut self.ends, &mut self.removes] {
                    let quota = limiter.quota();
                    let new = builder(self.kind, quota, self.has_tiers, limiter.clock());
                    *limiter = new.build_from(limiter).unwrap();
                }
            }
        }
    }

    fn restart(&mut self, millis: u64) {
        let saved = self.ends.save();
        self.advance(millis, true);
        self.ends = self.restored(&self.ends, &saved);
    }

    fn compare(&self) {
        for (key, until) in KEYS.iter().zip(self.until) {
            let [one, other] = [&self.ends, &self.removes].map(|limiter| {
                let peek = limiter.peek(key);
                let shown = (peek.limit(), peek.remaining(), peek.owed());
                let times = (peek.retry_after(), peek.idle_after());
                (limiter.quota_of(key), peek.verdict(), shown, times)
            });
            assert_eq!(one, other, "{key}");
            assert_eq!(self.ends.override_until(key), until, "{key}");
        }
    }
}

proptest! {
    #[test]
    fn it_ends_as_if_it_were_removed_just_then(
        kind in select(&AlgorithmKind::ALL[..]),
        has_tiers in any::<bool>(),
        steps in vec((step(), any::<bool>()), 1..40),
    ) {
        let mut twins = Twins::new(kind, has_tiers);
        for (step, is_seen) in &steps {
            twins.step(step);
            // Whoever looks ends what is over, so nobody does after most steps.
            if *is_seen {
                twins.compare();
            }
        }
        twins.compare();
    }
}

fn limiter(quota: &str) -> TestLimiter {
    Limiter::builder(quota).clock(ManualClock::default()).build().unwrap()
}

#[test]
fn it_ends_at_its_time_and_not_a_nanosecond_earlier() {
    let limiter = limiter("1/day");
    let until = limiter.clock().now() + Duration::from_secs(60);
    limiter.set_override_until("a", "100/day", until).unwrap();
    limiter.clock().advance(Duration::from_nanos(59_999_999_999));
    assert_eq!((limiter.check("a").limit(), limiter.override_until("a")), (100, Some(until)));
    limiter.clock().advance(Duration::from_nanos(1));
    assert_eq!(
        (limiter.quota_of("a"), limiter.override_until("a")),
        ("1/day".parse().unwrap(), None)
    );
    let after = limiter.check("a");
    assert_eq!((after.limit(), after.is_allowed()), (1, false), "what was spent stays spent");
    assert_eq!(limiter.remove_override("a"), None);
}

#[test]
fn a_time_that_has_passed_ends_what_was_there() {
    let limiter = limiter("10/s");
    limiter.set_override("a", "20/s").unwrap();
    let past = limiter.clock().now() - Duration::from_secs(1);
    limiter.set_override_until("a", "30/s", past).unwrap();
    assert_eq!(limiter.quota_of("a"), "10/s".parse().unwrap());
    assert_eq!(limiter.check("a").limit(), 10);
}

#[test]
fn it_ends_after_as_long_by_the_clock_of_another_machine() {
    let old = limiter("1/h burst 100");
    let until = old.clock().now() + Duration::from_secs(60);
    old.set_override_until("a", "1000/s", until).unwrap();
    old.set_override_until("b", "1000/s", until + Duration::from_secs(60)).unwrap();
    assert!(old.check_n("a", 50).is_allowed() && old.check_n("b", 50).is_allowed());
    let mut saved = old.save();
    // Saved, and read 90 seconds later where it is a year later.
    let then = old.clock().now() + Duration::from_secs(90);
    let clock = ManualClock::default();
    clock.advance(Duration::from_secs(365 * 24 * 60 * 60));
    let restore = |saved: &Saved, then| {
        let new = Limiter::<str>::builder("1/h burst 100").clock(clock.clone());
        let new = new.hasher(*old.table().hasher()).build().unwrap();
        new.restore(saved, then);
        new
    };
    let at_once = restore(&saved, then);
    saved.rebase(AlgorithmKind::TokenBucket, then, clock.now());
    let in_two_steps = restore(&saved, clock.now());
    for new in [&at_once, &in_two_steps] {
        let peek = new.peek("a");
        // 50 were spent when it ended, had it been looked at then; 60 seconds refilled them.
        assert_eq!((peek.verdict(), peek.limit(), peek.remaining()), (Verdict::Allowed, 100, 100));
        assert_eq!(new.override_until("b"), Some(clock.now() + Duration::from_secs(30)));
        assert_eq!(new.quota_of("b"), "1000/s".parse::<Quota>().unwrap());
    }
    clock.advance(Duration::from_secs(30));
    assert_eq!(at_once.check("b").limit(), 100);
}

#[test]
fn what_was_owed_at_the_end_is_owed_after_a_restart() {
    let old = limiter("1/h burst 100");
    let end = old.clock().now() + Duration::from_secs(1);
    old.set_override_until("a", "1/s burst 100", end).unwrap();
    assert!(old.check_n("a", 51).is_allowed());
    let saved = old.save();
    // Under the override all would be refilled by now; it ended when 50 were owed.
    old.clock().advance(Duration::from_secs(600));
    let new = Limiter::<str>::builder("1/h burst 100").clock(old.clock().clone());
    let new = new.hasher(*old.table().hasher()).build().unwrap();
    new.restore(&saved, old.clock().now());
    assert_eq!((new.peek("a").owed(), new.peek("a").limit()), (50, 100));
    assert_eq!(new.peek("a").remaining(), old.peek("a").remaining());
}

/// A limiter whose caller had an override of 1/s, which ended after a second with 50 owed.
/// Nobody has looked at it for the ten minutes since.
fn unseen() -> TestLimiter {
    let limiter = limiter("1/h burst 100");
    let end = limiter.clock().now() + Duration::from_secs(1);
    limiter.set_override_until("a", "1/s burst 100", end).unwrap();
    assert!(limiter.check_n("a", 51).is_allowed());
    limiter.clock().advance(Duration::from_secs(601));
    limiter
}

#[test]
fn one_that_nobody_saw_end_is_not_saved_as_one() {
    let saved = unseen().save();
    assert_eq!((saved.accounts.len(), saved.accounts[0].own), (1, None));
    assert_eq!(saved.accounts[0].account.quota, "1/h burst 100".parse().unwrap());
}

#[test]
fn the_next_quota_takes_over_what_has_not_run_off_at_the_rate_it_was_spent_under() {
    let limiter = unseen();
    assert_eq!(limiter.peek("a").owed(), 50, "at an hour each");
    limiter.set_override("a", "1/h burst 200").unwrap();
    assert_eq!(limiter.peek("a").owed(), 0, "at a second each, they have run off");
}

#[test]
fn a_reset_forgets_what_was_owed_at_the_end() {
    let limiter = unseen();
    limiter.reset("a");
    assert_eq!(limiter.peek("a").owed(), 0);
}

#[test]
fn a_quota_that_comes_back_finds_what_was_spent_under_it() {
    let limiter = limiter("1/s burst 100");
    let end = limiter.clock().now() + Duration::from_secs(1);
    limiter.set_override_until("a", "1/h burst 100", end).unwrap();
    assert!(limiter.check_n("a", 50).is_allowed());
    limiter.clock().advance(Duration::from_secs(601));
    assert_eq!(limiter.peek("a").owed(), 0, "ten minutes of 1/s have refilled it");
    limiter.set_quota("1/h burst 100").unwrap();
    assert_eq!(limiter.peek("a").owed(), 50, "and ten minutes of 1/h have not");
}
