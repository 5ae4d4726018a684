//! What the scripts do beside deciding.

use std::time::Duration;

use redis::FromRedisValue;
use spillgate::algorithm::Word;
use spillgate::{AlgorithmKind, Timestamp};
use spillgate_redis::backend::{Alive, Announcement, Exchange, Member};
use spillgate_redis::script;
use spillgate_redis::{Fingerprint, Name, State, Terms};

use crate::common::Server;
use crate::scripts::runner::ScriptRunner;

const ANN: Name = Name::from_bytes([1; 16]);
const BOB: Name = Name::from_bytes([2; 16]);

fn state(bits: u64) -> State {
    let quota = "10/s".parse().unwrap();
    State::new(Terms::new(AlgorithmKind::TokenBucket, quota), Word::from_bits(bits))
}

fn call<T: FromRedisValue>(
    client: &mut ScriptRunner,
    script: &str,
    key: &script::Key,
    arguments: &[script::Argument],
) -> T {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(1).arg(&key[..]);
    arguments.iter().for_each(|argument| {
        command.arg(&argument[..]);
    });
    command.query(&mut client.connection).unwrap()
}

fn exchange(
    client: &mut ScriptRunner,
    old: Option<&State>,
    new: Option<&State>,
    expires: Option<Duration>,
) -> bool {
    let exchange = Exchange { name: ANN, old: old.cloned(), new: new.cloned(), expires };
    let arguments = script::exchange(&exchange);
    let key = client.key(&ANN);
    call(client, script::EXCHANGE, &key, &arguments)
}

fn announce(client: &mut ScriptRunner, announcement: &Announcement) -> Alive {
    let key = script::Keys::default().nodes();
    let bytes: Vec<u8> = call(client, script::ANNOUNCE, &key, &script::announce(announcement));
    let mut alive = script::alive(&bytes, announcement.lists).unwrap();
    alive.others.iter_mut().for_each(|others| others.sort());
    alive
}

/// Says that a node is alive, and tells how many are.
fn join(client: &mut ScriptRunner, node: Name, lifetime: Duration) -> u32 {
    let joins = Some(Member { node, fingerprint: None });
    announce(client, &Announcement { joins, leaves: None, lifetime, lists: false }).count
}

fn born(client: &mut ScriptRunner, name: Name) -> Timestamp {
    let bytes: Vec<u8> = call(client, script::BORN, &script::Keys::default().born(&name), &[]);
    script::born(&bytes).unwrap()
}

#[test]
fn a_state_is_exchanged_only_for_the_one_that_is_there() {
    let client = &mut ScriptRunner::new(Server::redis());
    let (one, two) = (state(1), state(2));
    let (one, two) = (Some(&one), Some(&two));
    assert!(!exchange(client, one, two, None));
    assert_eq!(client.state(&ANN), None);

    assert!(exchange(client, None, one, Some(Duration::from_secs(3600))));
    assert_eq!(client.state(&ANN).as_ref(), one);
    assert!((3_000_000..=3_600_000).contains(&client.lifetime(&ANN)));
    assert!(!exchange(client, None, two, None));
    assert!(!exchange(client, two, None, None));
    assert_eq!(client.state(&ANN).as_ref(), one);

    assert!(exchange(client, one, two, None));
    assert_eq!((client.state(&ANN).as_ref(), client.lifetime(&ANN)), (two, -1));
    assert!(exchange(client, two, None, None));
    assert_eq!(client.state(&ANN), None);
}

#[test]
fn any_expiry_is_one_that_redis_takes() {
    let client = &mut ScriptRunner::new(Server::redis());
    for expires in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        client.flush();
        assert!(exchange(client, None, Some(&state(1)), Some(expires)), "{expires:?}");
    }
    assert!(client.lifetime(&ANN) > 100 * 365 * 24 * 3_600_000);
}

#[test]
fn nodes_count_while_they_say_that_they_are_alive() {
    let client = &mut ScriptRunner::new(Server::redis());
    let hour = Duration::from_secs(3600);
    assert_eq!(join(client, ANN, hour), 1);
    assert_eq!(join(client, ANN, hour), 1);
    assert_eq!(join(client, BOB, hour), 2);
    // By now the last word of the other is older than that.
    assert_eq!(join(client, BOB, Duration::from_micros(1)), 1);
}

#[test]
fn nodes_are_listed_by_what_they_share_by() {
    let client = &mut ScriptRunner::new(Server::redis());
    let lifetime = Duration::from_secs(3600);
    let print = |policy| Some(Fingerprint { secret: 0x102, policy });
    let member = |byte, fingerprint| Member { node: Name::from_bytes([byte; 16]), fingerprint };
    let look = Announcement { joins: None, leaves: None, lifetime, lists: true };
    assert_eq!(
        announce(client, &look),
        Alive { count: 0, others: Some(Vec::new()), other_prefixes: 0 }
    );
    for (byte, policy) in [(1, print(1)), (2, print(1)), (3, print(2)), (4, None)] {
        let joins = Some(member(byte, policy));
        announce(client, &Announcement { joins, lists: false, ..look });
    }
    // One of a version that is not known yet says more.
    let later = [&[5; 16][..], b"\x02later"].concat();
    let nodes = script::Keys::default().nodes();
    let now = client.time().as_nanos() / 1000;
    let mut zadd = redis::cmd("ZADD");
    zadd.arg(&nodes[..]).arg(now).arg(later).exec(&mut client.connection).unwrap();
    let own = Announcement { joins: Some(member(1, print(1))), ..look };
    let others = vec![(None, 1), (None, 1), (print(1), 1), (print(2), 1)];
    assert_eq!(
        announce(client, &own),
        Alive { count: 5, others: Some(others.clone()), other_prefixes: 0 }
    );
    // With another policy it is still one node.
    let changed = Announcement { joins: Some(member(1, print(2))), leaves: own.joins, ..look };
    assert_eq!(
        announce(client, &changed),
        Alive { count: 5, others: Some(others), other_prefixes: 0 }
    );
    let left = Announcement { leaves: changed.joins, lists: false, ..look };
    assert_eq!(announce(client, &left), Alive { count: 4, others: None, other_prefixes: 0 });
}

#[test]
fn what_is_born_stays_born_then() {
    let client = &mut ScriptRunner::new(Server::redis());
    let ann = born(client, ANN);
    assert!(ann > Timestamp::from_secs(1_700_000_000));
    let bob = born(client, BOB);
    assert!(bob > ann);
    assert_eq!((born(client, ANN), born(client, BOB)), (ann, bob));
}
