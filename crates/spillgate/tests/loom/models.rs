//! Every interleaving of a few threads on the smallest table: one line of two slots. `scripts/lib/loom` runs
//! them, with `--cfg spillgate_loom`.
#![cfg(all(test, spillgate_loom))]

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use spillgate::algorithm::{AnyAlgorithm, TokenBucket};
use spillgate::{
    Clock, Concurrency, Fingerprint, KeyedState, Limiter, ManualClock, Quota, Seed, Table,
    Timestamp,
};

const NOW: Timestamp = Timestamp::from_secs(1_000);

fn bucket(burst: u64) -> AnyAlgorithm {
    TokenBucket::new(&Quota::per_second(1).burst(burst).build().unwrap()).unwrap().into()
}

/// A table of two slots, which all callers share.
fn table(burst: u64) -> Arc<Table> {
    Arc::new(Table::new(bucket(burst), 1).unwrap())
}

/// The first two enter under one lock, the others under the other.
const CALLERS: [Fingerprint; 4] = [caller(3), caller(11), caller(4), caller(6)];

const fn caller(bits: u64) -> Fingerprint {
    Fingerprint::from_bits(bits)
}

fn spend(table: &Table, caller: Fingerprint, now: Timestamp) -> usize {
    spend_n(table, caller, 1, now)
}

fn spend_n(table: &Table, caller: Fingerprint, cost: u64, now: Timestamp) -> usize {
    usize::from(table.check_at(caller, cost, now).is_allowed())
}

/// The quota of the table, but each token takes twice as long: so a word that is
/// read under the wrong one counts for too little.
fn slower(burst: u64) -> AnyAlgorithm {
    let quota = Quota::per(1, Duration::from_secs(2)).burst(burst).build().unwrap();
    TokenBucket::new(&quota).unwrap().into()
}

#[test]
fn two_first_calls_of_one_caller_share_one_entry() {
    loom::model(|| {
        let table = table(1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, CALLERS[0], NOW));
        let here = spend(&table, CALLERS[0], NOW);
        assert_eq!(here + thread.join().unwrap(), 1);
        assert_eq!(table.iter().count(), 1);
    });
}

#[test]
fn calls_of_a_known_caller_never_spend_a_token_twice() {
    loom::model(|| {
        let table = table(2);
        assert_eq!(spend(&table, CALLERS[0], NOW), 1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, CALLERS[0], NOW));
        let here = spend(&table, CALLERS[0], NOW);
        assert_eq!(here + thread.join().unwrap(), 1);
    });
}

#[test]
fn a_caller_whose_idle_slot_is_taken_over_is_neither_doubled_nor_denied() {
    loom::model(|| {
        let [ours, neighbour, newcomer, _] = CALLERS;
        let table = table(1);
        // Both are idle later, ours for longer: so it is the one to lose its slot, and
        // has the other one to go to.
        assert_eq!(spend(&table, ours, NOW), 1);
        assert_eq!(spend(&table, neighbour, NOW + Duration::from_millis(500)), 1);
        let later = NOW + Duration::from_secs(2);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || [(); 2].map(|()| spend(&other, ours, later)));
        assert_eq!(spend(&table, newcomer, later), 1);
        // Full again by then, whether its slot was still there or not.
        assert_eq!(thread.join().unwrap(), [1, 0]);
        assert_eq!(spend(&table, ours, later), 0);
        assert_eq!(spend(&table, newcomer, later), 0);
    });
}

#[test]
fn a_caller_reclaimed_later_is_not_full_earlier() {
    loom::model(|| {
        let [ours, _, newcomer, heavy] = CALLERS;
        let table = table(1);
        // Nobody takes this one's slot, so ours is the one that is reclaimed.
        table.debit_at(heavy, 10, NOW);
        assert_eq!(spend(&table, ours, NOW), 1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, ours, NOW));
        assert_eq!(spend(&table, newcomer, NOW + Duration::from_secs(1)), 1);
        assert_eq!(thread.join().unwrap(), 0);
    });
}

#[test]
fn a_denial_is_never_decided_on_a_strangers_word() {
    loom::model(|| {
        let [ours, _, stranger, heavy] = CALLERS;
        let table = table(3);
        // Nobody spends more than this one, so it keeps its slot and the other slot
        // changes hands: to the stranger, who spends all, and back to us.
        table.debit_at(heavy, 10, NOW);
        assert_eq!(spend(&table, ours, NOW), 1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || {
            spend_n(&other, stranger, 3, NOW);
            spend(&other, ours, NOW);
        });
        assert_eq!(spend(&table, ours, NOW), 1, "three calls of three never fail");
        thread.join().unwrap();
    });
}

#[test]
fn evictions_leave_each_caller_at_most_one_entry() {
    loom::model(|| {
        let [one, two, three, _] = CALLERS;
        let table = table(3);
        spend(&table, one, NOW);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || {
            spend(&other, two, NOW);
            spend(&other, three, NOW);
        });
        spend(&table, one, NOW);
        thread.join().unwrap();
        let mut entries: Vec<_> = table.iter().map(|(caller, _)| caller).collect();
        entries.sort();
        let count = entries.len();
        entries.dedup();
        assert_eq!(entries.len(), count);
    });
}

#[test]
fn a_change_of_quota_loses_no_charge() {
    loom::model(|| {
        let caller = CALLERS[0];
        let table = table(4);
        spend(&table, caller, NOW);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend_n(&other, caller, 2, NOW));
        table.set_algorithm_at(slower(4), NOW);
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(table.peek_at(caller, 1, NOW).remaining(), 1);
    });
}

#[test]
fn a_change_of_quota_loses_no_charge_of_an_idle_caller() {
    loom::model(|| {
        let caller = CALLERS[0];
        let table = table(4);
        spend(&table, caller, NOW);
        // Idle since this very moment, the hardest case to tell apart.
        let later = NOW + Duration::from_secs(1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend_n(&other, caller, 2, later));
        table.set_algorithm_at(slower(4), later);
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(table.peek_at(caller, 1, later).remaining(), 2);
    });
}

#[test]
fn a_change_of_quota_and_a_first_call_agree_on_what_was_spent() {
    loom::model(|| {
        let caller = CALLERS[0];
        let table = table(4);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend_n(&other, caller, 2, NOW));
        table.set_algorithm_at(slower(4), NOW);
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(table.peek_at(caller, 1, NOW).remaining(), 2);
    });
}

#[test]
fn purging_never_forgets_what_is_spent() {
    loom::model(|| {
        let caller = CALLERS[0];
        let table = table(1);
        spend(&table, caller, NOW);
        let later = NOW + Duration::from_secs(1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, caller, later));
        table.purge_idle_at(later);
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(spend(&table, caller, later), 0);
    });
}

/// A limiter of one slot line, whose caller has spent all but `left` of four.
fn limiter(left: u64) -> Arc<Limiter<u64, ManualClock>> {
    let builder = Limiter::<u64>::builder("1/s burst 4").capacity(1).clock(ManualClock::default());
    let limiter = Arc::new(builder.build().unwrap());
    assert!(limiter.check_n(&7, 4 - left).is_allowed());
    limiter
}

fn calls(limiter: &Limiter<u64, ManualClock>, count: usize) -> usize {
    (0..count).filter(|_| limiter.check(&7).is_allowed()).count()
}

#[test]
fn an_override_that_comes_charges_every_call_once() {
    loom::model(|| {
        let limiter = limiter(1);
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || calls(&other, 2));
        limiter.set_override(&7, "1/s burst 4").unwrap();
        assert_eq!(thread.join().unwrap() + calls(&limiter, 1), 1);
    });
}

#[test]
fn an_override_that_goes_charges_every_call_once() {
    loom::model(|| {
        let limiter = limiter(1);
        limiter.set_override(&7, "1/s burst 4").unwrap();
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || calls(&other, 2));
        limiter.remove_override(&7);
        assert_eq!(thread.join().unwrap() + calls(&limiter, 1), 1);
    });
}

#[test]
fn an_override_that_ends_by_itself_charges_every_call_once() {
    loom::model(|| {
        let limiter = limiter(1);
        let until = limiter.clock().now() + Duration::from_nanos(1);
        limiter.set_override_until(&7, "1/s burst 4", until).unwrap();
        limiter.clock().advance(Duration::from_nanos(1));
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || calls(&other, 1));
        let here = calls(&limiter, 1);
        assert_eq!(thread.join().unwrap() + here, 1);
    });
}

#[test]
fn a_quota_of_a_limiter_that_changes_charges_every_call_once() {
    // With a change of thread at every step it takes minutes.
    let mut few_changes = loom::model::Builder::new();
    few_changes.preemption_bound = Some(3);
    few_changes.check(|| {
        let limiter = limiter(1);
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || calls(&other, 1));
        limiter.set_quota("1/min burst 4").unwrap();
        assert_eq!(thread.join().unwrap() + calls(&limiter, 1), 1);
    });
}

#[test]
fn calls_under_quotas_of_two_classes_are_charged_once() {
    loom::model(|| {
        let table = table(1);
        let with = |table: &Table, quota: &str, cost| {
            let bucket = TokenBucket::new(&quota.parse().unwrap()).unwrap();
            usize::from(table.check_with_at(caller(7), bucket, cost, NOW).is_allowed())
        };
        assert_eq!(with(&table, "1/s burst 9", 8), 1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || with(&other, "1/s burst 9", 1));
        // Of a smaller burst, to which the word passes.
        assert_eq!(with(&table, "1/s burst 2", 1), 0);
        assert_eq!(thread.join().unwrap() + with(&table, "1/s burst 9", 1), 1);
    });
}

/// A key with the tier of its call, by which it is not identified.
#[derive(PartialEq, Eq)]
struct Tiered(u64, Option<&'static str>);

impl std::hash::Hash for Tiered {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn calls_in_two_tiers_are_charged_to_one_caller() {
    loom::model(|| {
        let builder = Limiter::<Tiered>::builder("1/h burst 1").capacity(1);
        let builder = builder.tier("gold", "1/min burst 1").tier_of(|key: &Tiered| key.1);
        let limiter = Arc::new(builder.clock(ManualClock::default()).build().unwrap());
        let passes = |limiter: &Limiter<Tiered, ManualClock>, tier| {
            usize::from(limiter.check(&Tiered(7, tier)).is_allowed())
        };
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || passes(&other, Some("gold")));
        let here = passes(&limiter, None);
        assert_eq!(thread.join().unwrap() + here, 1);
    });
}

#[test]
fn a_caller_that_is_given_an_override_in_its_first_call_is_charged_once() {
    loom::model(|| {
        let builder = Limiter::<u64>::builder("1/s burst 1").capacity(1);
        let limiter = Arc::new(builder.clock(ManualClock::default()).build().unwrap());
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || calls(&other, 1));
        limiter.set_override(&7, "1/s burst 1").unwrap();
        assert_eq!(thread.join().unwrap() + calls(&limiter, 2), 1);
    });
}

#[test]
fn a_call_whose_slot_a_stranger_took_over_with_the_same_word_is_charged_itself() {
    loom::model(|| {
        let [ours, _, stranger, heavy] = CALLERS;
        let table = table(2);
        // Nobody takes this one's slot, so there is one other to fight over.
        table.debit_at(heavy, 10, NOW);
        assert_eq!(spend(&table, ours, NOW), 1);
        let other = Arc::clone(&table);
        // Evicts ours, and leaves the word that ours had.
        let thread = thread::spawn(move || spend(&other, stranger, NOW));
        let here = spend(&table, ours, NOW);
        thread.join().unwrap();
        let owed = table.iter().map(|(caller, word)| {
            use spillgate::algorithm::Algorithm;
            (caller, table.algorithm().owed(word, NOW))
        });
        // Whoever is there has paid for itself.
        for (caller, owed) in owed.filter(|(caller, _)| *caller != heavy) {
            assert!((1..=2).contains(&owed), "{caller:?} owes {owed}");
        }
        assert_eq!(here, 1, "two of two never fail");
    });
}

/// Permits of the keys 0, 1 and 2, of which the last two are in one shard of two.
fn permits(limit: u32, capacity: usize) -> Concurrency<u64> {
    // Under this seed, as `the_keys_are_where_they_should_be` checks.
    let hasher = KeyedState::with_seed(Seed::from_bytes([1; 16]));
    Concurrency::builder(limit).capacity(capacity).hasher(hasher).build()
}

/// Acquires and releases, and returns how many were in flight at most.
fn acquire(permits: &Concurrency<u64>, key: u64) -> Option<u32> {
    permits.try_acquire(&key).ok().map(|permit| permit.in_flight())
}

#[test]
fn one_permit_is_never_held_twice() {
    loom::model(|| {
        let permits = permits(1, 4);
        let held = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        let call = move |permits: &Concurrency<u64>, held: &loom::sync::atomic::AtomicUsize| {
            use loom::sync::atomic::Ordering::Relaxed;
            let Ok(permit) = permits.try_acquire(&7) else { return 0 };
            assert_eq!(held.fetch_add(1, Relaxed), 0, "two hold it");
            held.fetch_sub(1, Relaxed);
            drop(permit);
            1
        };
        let (other, other_held) = (permits.clone(), Arc::clone(&held));
        let thread = thread::spawn(move || call(&other, &other_held));
        let here = call(&permits, &held);
        assert!(here + thread.join().unwrap() >= 1, "a free permit is refused to both");
        assert_eq!((permits.total_in_flight(), permits.active_keys()), (0, 0));
    });
}

#[test]
fn a_released_permit_goes_to_one_of_two() {
    loom::model(|| {
        let permits = permits(2, 4);
        let (first, second) = (permits.try_acquire(&7).unwrap(), permits.try_acquire(&7).unwrap());
        let other = permits.clone();
        let thread = thread::spawn(move || {
            drop(first);
            other.try_acquire(&7).ok()
        });
        let here = permits.try_acquire(&7).ok();
        let there = thread.join().unwrap();
        assert_eq!(usize::from(here.is_some()) + usize::from(there.is_some()), 1);
        drop((here, there, second));
        assert_eq!((permits.total_in_flight(), permits.active_keys()), (0, 0));
    });
}

#[test]
fn two_keys_never_exceed_a_capacity_of_one() {
    for (one, other_key) in [(0, 1), (1, 2)] {
        loom::model(move || {
            let permits = permits(1, 1);
            let other = permits.clone();
            let thread = thread::spawn(move || other.try_acquire(&other_key).ok());
            let here = permits.try_acquire(&one).ok();
            let there = thread.join().unwrap();
            assert_eq!(usize::from(here.is_some()) + usize::from(there.is_some()), 1);
            assert_eq!(permits.active_keys(), 1);
            drop((here, there));
            assert_eq!((permits.total_in_flight(), permits.active_keys()), (0, 0));
        });
    }
}

#[test]
fn a_key_that_leaves_makes_room_for_another() {
    loom::model(|| {
        let permits = permits(1, 2);
        let leaves = permits.try_acquire(&0).unwrap();
        let other = permits.clone();
        let thread = thread::spawn(move || {
            drop(leaves);
            acquire(&other, 1)
        });
        // One of two places is free in any case.
        assert_eq!(acquire(&permits, 2), Some(1));
        assert_eq!(thread.join().unwrap(), Some(1));
        assert_eq!((permits.total_in_flight(), permits.active_keys()), (0, 0));
    });
}

#[test]
fn a_limit_that_was_lowered_grants_nothing_under_the_old_one() {
    loom::model(|| {
        let permits = permits(2, 4);
        let _held = permits.try_acquire(&7).unwrap();
        let other = permits.clone();
        let thread = thread::spawn(move || other.try_acquire(&7).ok());
        permits.set_limit(1);
        // What the other thread has it got before the change; from now on there is none.
        let in_flight = permits.in_flight(&7);
        assert!(permits.try_acquire(&7).is_err());
        let there = thread.join().unwrap();
        assert_eq!(in_flight, 1 + u32::from(there.is_some()));
    });
}

#[test]
fn the_keys_are_where_they_should_be() {
    loom::model(|| {
        use std::hash::BuildHasher;
        let hasher = KeyedState::with_seed(Seed::from_bytes([1; 16]));
        let [one, two, three] = [0_u64, 1, 2].map(|key| (hasher.hash_one(key) >> 32) % 2);
        assert!(one != two && two == three, "{one} {two} {three}");
    });
}
