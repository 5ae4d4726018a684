//! Every interleaving of a few threads on the smallest table: one line of two slots. Run by `scripts/test` with `--cfg spillgate_loom`.
#![cfg(spillgate_loom)]

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use spillgate::algorithm::{AnyAlgorithm, TokenBucket};
use spillgate::{Fingerprint, Limiter, ManualClock, Quota, Table, Timestamp};

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
