//! Every interleaving of a few threads on the smallest table: two groups of one
//! slot each. Run by `scripts/test` with `--cfg tollgate_loom`.
#![cfg(tollgate_loom)]

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use tollgate::algorithm::{AnyAlgorithm, TokenBucket};
use tollgate::{Fingerprint, Quota, Table, Timestamp};

const NOW: Timestamp = Timestamp::from_secs(1_000);

fn bucket(burst: u64) -> AnyAlgorithm {
    TokenBucket::new(&Quota::per_second(1).burst(burst).build().unwrap()).into()
}

/// A table of two slots. Its clients must share both to fight over them.
fn table(burst: u64) -> Arc<Table> {
    Arc::new(Table::new(bucket(burst), 1).unwrap())
}

/// A client, and the stripe it enters by: bits are taken modulo two.
const fn client(bits: u64) -> Fingerprint {
    Fingerprint::from_bits(bits)
}

fn spend(table: &Table, client: Fingerprint, now: Timestamp) -> usize {
    usize::from(table.check_at(client, 1, now).is_allowed())
}

#[test]
fn two_first_calls_of_one_client_share_one_entry() {
    loom::model(|| {
        let table = table(1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, client(1), NOW));
        let here = spend(&table, client(1), NOW);
        assert_eq!(here + thread.join().unwrap(), 1);
        assert_eq!(table.iter().count(), 1);
    });
}

#[test]
fn calls_of_a_known_client_never_spend_a_token_twice() {
    loom::model(|| {
        let table = table(2);
        assert_eq!(spend(&table, client(1), NOW), 1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, client(1), NOW));
        let here = spend(&table, client(1), NOW);
        assert_eq!(here + thread.join().unwrap(), 1);
    });
}

#[test]
fn a_client_whose_idle_slot_is_taken_over_is_neither_doubled_nor_denied() {
    loom::model(|| {
        let table = table(1);
        assert_eq!(spend(&table, client(1), NOW), 1);
        let later = NOW + Duration::from_secs(1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, client(2), later));
        // Full again by now, whether its slot is still there or not.
        assert_eq!(spend(&table, client(1), later), 1);
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(spend(&table, client(1), later), 0);
        assert_eq!(spend(&table, client(2), later), 0);
    });
}

#[test]
fn a_denial_is_never_decided_on_a_strangers_word() {
    loom::model(|| {
        let table = table(2);
        // The stranger is throttled; ours has one token left.
        assert_eq!(spend(&table, client(2), NOW) + spend(&table, client(2), NOW), 2);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || {
            spend(&other, client(3), NOW);
        });
        assert_eq!(spend(&table, client(1), NOW), 1, "a first call passes");
        thread.join().unwrap();
    });
}

#[test]
fn evictions_leave_each_client_at_most_one_entry() {
    loom::model(|| {
        let table = table(3);
        spend(&table, client(1), NOW);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || {
            spend(&other, client(2), NOW);
            spend(&other, client(4), NOW);
        });
        spend(&table, client(1), NOW);
        thread.join().unwrap();
        let mut entries: Vec<_> = table.iter().map(|(client, _)| client).collect();
        let count = entries.len();
        entries.dedup();
        entries.sort();
        entries.dedup();
        assert_eq!(entries.len(), count);
    });
}

#[test]
fn a_change_of_quota_loses_no_charge() {
    loom::model(|| {
        let table = table(4);
        spend(&table, client(1), NOW);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, client(1), NOW));
        // One token takes twice as long, so an old word means less than it should.
        let slower = Quota::per(1, Duration::from_secs(2)).burst(4).build().unwrap();
        table.set_algorithm_at(TokenBucket::new(&slower).into(), NOW);
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(table.peek_at(client(1), 1, NOW).remaining(), 2);
    });
}

#[test]
fn a_change_of_quota_and_a_first_call_agree_on_what_was_spent() {
    loom::model(|| {
        let table = table(4);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, client(1), NOW));
        let slower = Quota::per(1, Duration::from_secs(2)).burst(4).build().unwrap();
        table.set_algorithm_at(TokenBucket::new(&slower).into(), NOW);
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(table.peek_at(client(1), 1, NOW).remaining(), 3);
    });
}

#[test]
fn purging_never_forgets_what_is_spent() {
    loom::model(|| {
        let table = table(1);
        spend(&table, client(1), NOW);
        let later = NOW + Duration::from_secs(1);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || spend(&other, client(1), later));
        table.purge_idle_at(later);
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(spend(&table, client(1), later), 0);
    });
}
