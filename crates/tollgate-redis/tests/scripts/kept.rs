//! What is kept already, and for how long what is written is.

use std::time::Duration;

use tollgate::algorithm::{Algorithm, Word};
use tollgate::{AlgorithmKind, Timestamp};
use tollgate_redis::engine::{Entry, Fault, Found, Op, wire};
use tollgate_redis::{Name, State, Terms};

use crate::client::Client;
use crate::common::Server;

const ANN: Name = Name::from_bytes([1; 16]);
const BOB: Name = Name::from_bytes([2; 16]);

fn terms(kind: AlgorithmKind, quota: &str) -> Terms {
    Terms { kind, quota: quota.parse().unwrap(), is_override: false }
}

fn spends(name: Name, terms: Terms) -> Entry {
    let fresh = terms.algorithm().unwrap().fresh(Timestamp::ZERO);
    Entry { name, terms, fresh, op: Op::Spend { cost: 1, is_shadow: false } }
}

/// What a call for two callers fails with, the second of whom has this value.
fn fault_of(value: &[u8]) -> Fault {
    let client = &mut Client::new(Server::redis());
    client.set(&BOB, value);
    let bucket = terms(AlgorithmKind::TokenBucket, "10/s");
    let entries = [spends(ANN, bucket), spends(BOB, bucket)];
    let bytes: Vec<u8> = client.command(&entries, None).query(&mut client.connection).unwrap();
    assert_eq!(client.state(&ANN), None, "nothing may be written");
    wire::reply(&bytes, entries.len()).unwrap_err().fault()
}

#[test]
fn a_state_of_a_later_version_is_left_alone_and_told() {
    let terms = terms(AlgorithmKind::TokenBucket, "10/s");
    let mut value = State { terms, word: Word::from_bits(0) }.to_bytes().to_vec();
    value[0] = 2;
    assert_eq!(fault_of(&value), Fault::NewerState);
    value.extend([0; 300]);
    assert_eq!(fault_of(&value), Fault::NewerState);
}

#[test]
fn values_of_others_are_left_alone_and_told() {
    let terms = terms(AlgorithmKind::TokenBucket, "10/s");
    let value = State { terms, word: Word::from_bits(0) }.to_bytes();
    assert_eq!(fault_of(b"hello"), Fault::Nonsense);
    assert_eq!(fault_of(b""), Fault::Nonsense);
    assert_eq!(fault_of(&value[..33]), Fault::Nonsense);
    assert_eq!(fault_of(&[&value[..], b"!"].concat()), Fault::Nonsense);
}

#[test]
fn a_key_that_is_no_string_is_an_error_before_anything_is_written() {
    let client = &mut Client::new(Server::redis());
    let key = client.key(&BOB);
    redis::cmd("LPUSH").arg(&key[..]).arg(1).exec(&mut client.connection).unwrap();
    let bucket = terms(AlgorithmKind::TokenBucket, "10/s");
    let command = client.command(&[spends(ANN, bucket), spends(BOB, bucket)], None);
    let error = command.query::<Vec<u8>>(&mut client.connection).unwrap_err();
    assert_eq!(error.code(), Some("WRONGTYPE"), "{error}");
    assert_eq!(client.state(&ANN), None);
}

#[test]
fn time_is_the_engines_own() {
    let client = &mut Client::new(Server::redis());
    let before = client.time();
    let now = client.run(&[spends(ANN, terms(AlgorithmKind::TokenBucket, "10/s"))], None).now;
    assert!(before <= now && now <= client.time(), "{before} {now}");
}

#[test]
fn states_live_a_second_longer_than_what_is_spent() {
    let client = &mut Client::new(Server::redis());
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
    let client = &mut Client::new(Server::redis());
    let given = Terms { is_override: true, ..terms(AlgorithmKind::FixedWindow, "10/h") };
    for terms in [given, terms(AlgorithmKind::TokenBucket, "burst 5")] {
        client.flush();
        let idle = State { terms, word: spends(ANN, terms).fresh };
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
    let client = &mut Client::new(Server::redis());
    let own = terms(AlgorithmKind::TokenBucket, "10/h");
    let given = Terms { is_override: true, ..own };
    for op in [Op::Look, Op::Charge(1), Op::Take { least: 1, most: 2 }, Op::Reset] {
        let asked = Entry { op, ..spends(BOB, given) };
        let reply = client.run(&[spends(ANN, own), asked], None);
        assert_eq!(reply.answers[1], Found::Gone);
        assert_eq!((client.state(&ANN), client.state(&BOB)), (None, None));
    }
}
