//! What is kept already, and for how long what is written is.

use std::time::Duration;

use spillgate::account::SavedPile;
use spillgate::algorithm::{Algorithm, Word};
use spillgate::{AlgorithmKind, Timestamp};
use spillgate_redis::backend::{Entry, Fault, Found, Op};
use spillgate_redis::script;
use spillgate_redis::{Name, Past, State, Terms};

use crate::common::Server;
use crate::scripts::runner::ScriptRunner;

const ANN: Name = Name::from_bytes([1; 16]);
const BOB: Name = Name::from_bytes([2; 16]);

fn terms(kind: AlgorithmKind, quota: &str) -> Terms {
    Terms::new(kind, quota.parse().unwrap())
}

fn spends(name: Name, terms: Terms) -> Entry {
    let algorithm = terms.algorithm().unwrap();
    let fresh = algorithm.fresh(Timestamp::ZERO);
    Entry { name, terms, algorithm, fresh, op: Op::Spend { cost: 1, is_shadow: false } }
}

/// What a call for two callers fails with, the second of whom has this value.
fn fault_of(value: &[u8]) -> Fault {
    let client = &mut ScriptRunner::new(Server::redis());
    client.set(&BOB, value);
    let bucket = terms(AlgorithmKind::TokenBucket, "10/s");
    let entries = [spends(ANN, bucket), spends(BOB, bucket)];
    let bytes: Vec<u8> = client.command(&entries, None).query(&mut client.connection).unwrap();
    assert_eq!(client.state(&ANN), None, "nothing may be written");
    script::reply(&bytes, entries.len()).unwrap_err().fault()
}

#[test]
fn a_state_of_another_version_is_left_alone_and_told() {
    let terms = terms(AlgorithmKind::TokenBucket, "10/s");
    let mut value = State::new(terms, Word::from_bits(0)).to_bytes().to_vec();
    for version in [1, 2, 4] {
        value[0] = version;
        assert_eq!(fault_of(&value), Fault::OtherVersion);
    }
    value.extend([0; 300]);
    assert_eq!(fault_of(&value), Fault::OtherVersion);
}

#[test]
fn values_of_others_are_left_alone_and_told() {
    let terms = terms(AlgorithmKind::TokenBucket, "10/s");
    let value = State::new(terms, Word::from_bits(0)).to_bytes();
    assert_eq!(fault_of(b"hello"), Fault::Corrupt);
    assert_eq!(fault_of(b""), Fault::Corrupt);
    assert_eq!(fault_of(&value[..33]), Fault::Corrupt);
    assert_eq!(fault_of(&[&value[..], b"!"].concat()), Fault::Corrupt);
}

#[test]
fn a_key_that_is_no_string_is_an_error_before_anything_is_written() {
    let client = &mut ScriptRunner::new(Server::redis());
    let key = client.key(&BOB);
    redis::cmd("LPUSH").arg(&key[..]).arg(1).exec(&mut client.connection).unwrap();
    let bucket = terms(AlgorithmKind::TokenBucket, "10/s");
    let command = client.command(&[spends(ANN, bucket), spends(BOB, bucket)], None);
    let error = command.query::<Vec<u8>>(&mut client.connection).unwrap_err();
    assert_eq!(error.code(), Some("WRONGTYPE"), "{error}");
    assert_eq!(client.state(&ANN), None);
}

#[test]
fn time_is_redis_own() {
    let client = &mut ScriptRunner::new(Server::redis());
    let before = client.time();
    let now = client.run(&[spends(ANN, terms(AlgorithmKind::TokenBucket, "10/s"))], None).now;
    assert!(before <= now && now <= client.time(), "{before} {now}");
}

#[test]
fn states_live_a_second_longer_than_what_is_spent() {
    let client = &mut ScriptRunner::new(Server::redis());
    for kind in AlgorithmKind::ALL {
        client.flush();
        let terms = terms(kind, "10/h");
        let reply = client.run(&[spends(ANN, terms)], None);
        assert!(matches!(reply.answers[0], Found::Passed(_)));
        let word = client.state(&ANN).unwrap().word;
        let reset = terms.algorithm().unwrap().reset_after(word, reply.now).unwrap();
        let lifetime = Duration::from_millis(client.lifetime(&ANN).try_into().unwrap());
        let most = reset + Duration::from_secs(2);
        assert!(lifetime <= most, "{kind}: {lifetime:?} for {reset:?}");
        // What has passed since it was written, and what a whole number of milliseconds hides.
        let passed = client.time().since(reply.now) + Duration::from_millis(1);
        let least = reset + Duration::from_secs(1);
        assert!(lifetime + passed >= least, "{kind}: {lifetime:?} for {reset:?}");
    }
}

#[test]
fn overrides_and_what_is_never_refilled_are_kept_for_ever() {
    let client = &mut ScriptRunner::new(Server::redis());
    let given = Terms { is_override: true, ..terms(AlgorithmKind::FixedWindow, "10/h") };
    for terms in [given, terms(AlgorithmKind::TokenBucket, "burst 5")] {
        client.flush();
        let idle = State::new(terms, spends(ANN, terms).fresh);
        client.set(&ANN, &idle.to_bytes());
        client.run(&[spends(ANN, terms)], None);
        assert_ne!(client.state(&ANN), Some(idle));
        assert_eq!(client.lifetime(&ANN), -1);
        client.run(&[Entry { op: Op::Reset, ..spends(ANN, terms) }], None);
        assert_eq!(client.lifetime(&ANN), -1);
        assert_eq!(client.state(&ANN).unwrap().terms, terms);
    }
}

#[test]
fn an_override_that_is_gone_is_not_brought_back() {
    let client = &mut ScriptRunner::new(Server::redis());
    let own = terms(AlgorithmKind::TokenBucket, "10/h");
    let given = Terms { is_override: true, ..own };
    let debit = Op::Debit { amount: 1, most: 9 };
    for op in [Op::Look, debit, Op::Take { least: 1, most: 2 }, Op::Reset, Op::Read] {
        let asked = Entry { op, ..spends(BOB, given) };
        let reply = client.run(&[spends(ANN, own), asked], None);
        assert_eq!(reply.answers[1], Found::Gone);
        assert_eq!((client.state(&ANN), client.state(&BOB)), (None, None));
    }
}

/// A caller whose quota has moved.
fn with_past(terms: Terms) -> State {
    let pile = SavedPile { quota: terms.quota, word: WORD, lag: Duration::ZERO };
    // As long as the state of a caller whose quota has moved often.
    let (at, piles) = (Timestamp::from_nanos(7), vec![pile; 9]);
    let past = Past { debt: WORD, at, since: at, piles };
    State { past: Some(Box::new(past)), ..State::new(terms, spends(ANN, terms).fresh) }
}

const WORD: Word = Word::from_bits(77);

#[test]
fn where_the_word_does_not_tell_all_nothing_is_decided_or_written() {
    let client = &mut ScriptRunner::new(Server::redis());
    let own = terms(AlgorithmKind::TokenBucket, "10/h");
    for terms in [own, Terms { is_override: true, ..own }] {
        let state = with_past(terms);
        let debit = Op::Debit { amount: 3, most: 9 };
        let give_back = Op::GiveBack { amount: 1, spent: None };
        let spend = Op::Spend { cost: 1, is_shadow: false };
        for op in [spend, debit, give_back, Op::Take { least: 1, most: 2 }, Op::Look, Op::Reset] {
            client.flush();
            client.set(&ANN, &state.to_bytes());
            let asked = [Entry { op, ..spends(ANN, terms) }, spends(BOB, own)];
            let reply = client.run(&asked, None);
            assert_eq!(reply.answers[0], Found::Other(state.clone()));
            assert_eq!((client.state(&ANN), client.state(&BOB)), (Some(state.clone()), None));
        }
    }
}

#[test]
fn who_is_only_read_keeps_nobody_from_spending() {
    let client = &mut ScriptRunner::new(Server::redis());
    let own = terms(AlgorithmKind::TokenBucket, "10/h");
    let state = with_past(own);
    client.set(&ANN, &state.to_bytes());
    let asked = [Entry { op: Op::Read, ..spends(ANN, own) }, spends(BOB, own)];
    let reply = client.run(&asked, None);
    assert_eq!(reply.answers[0], Found::Other(state.clone()));
    assert!(matches!(reply.answers[1], Found::Passed(_)));
    assert_eq!(client.state(&ANN), Some(state));
    assert!(client.state(&BOB).is_some());
}

#[test]
fn what_is_read_is_told_whole() {
    let client = &mut ScriptRunner::new(Server::redis());
    let own = terms(AlgorithmKind::TokenBucket, "10/h");
    let read = Entry { op: Op::Read, ..spends(ANN, own) };
    let nothing = client.run(std::slice::from_ref(&read), None);
    assert_eq!(nothing.answers[0], Found::Passed(read.fresh));
    let state = with_past(own);
    client.set(&ANN, &state.to_bytes());
    assert_eq!(client.run(&[read], None).answers[0], Found::Other(state.clone()));
    assert_eq!(client.state(&ANN), Some(state));
}
