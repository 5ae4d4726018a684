//! What the scripts do beside deciding.

use std::time::Duration;

use redis::FromRedisValue;
use tollgate::algorithm::Word;
use tollgate::{AlgorithmKind, Timestamp};
use tollgate_redis::engine::{Exchange, scripts, wire};
use tollgate_redis::{Name, State, Terms};

use crate::client::Client;
use crate::common::Server;

const ANN: Name = Name::from_bytes([1; 16]);
const BOB: Name = Name::from_bytes([2; 16]);

fn state(bits: u64) -> State {
    let quota = "10/s".parse().unwrap();
    let terms = Terms { kind: AlgorithmKind::TokenBucket, quota, is_override: false };
    State { terms, word: Word::from_bits(bits) }
}

fn call<T: FromRedisValue>(
    client: &mut Client,
    script: &str,
    key: &wire::Key,
    arguments: &[wire::Argument],
) -> T {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(1).arg(&key[..]);
    arguments.iter().for_each(|argument| {
        command.arg(&argument[..]);
    });
    command.query(&mut client.connection).unwrap()
}

fn exchange(
    client: &mut Client,
    old: Option<State>,
    new: Option<State>,
    expires: Option<Duration>,
) -> bool {
    let arguments = wire::exchange(&Exchange { name: ANN, old, new, expires });
    let key = client.key(&ANN);
    call(client, scripts::EXCHANGE, &key, &arguments)
}

fn announce(client: &mut Client, node: Name, lifetime: Duration) -> u32 {
    let key = wire::Keys::default().nodes();
    call(client, scripts::ANNOUNCE, &key, &wire::announce(&node, lifetime))
}

fn born(client: &mut Client, name: Name) -> Timestamp {
    let bytes: Vec<u8> = call(client, scripts::BORN, &wire::Keys::default().born(&name), &[]);
    wire::born(&bytes).unwrap()
}

#[test]
fn a_state_is_exchanged_only_for_the_one_that_is_there() {
    let client = &mut Client::new(Server::redis());
    let (one, two) = (Some(state(1)), Some(state(2)));
    assert!(!exchange(client, one, two, None));
    assert_eq!(client.state(&ANN), None);

    assert!(exchange(client, None, one, Some(Duration::from_secs(3600))));
    assert_eq!(client.state(&ANN), one);
    assert!((3_000_000..=3_600_000).contains(&client.lifetime(&ANN)));
    assert!(!exchange(client, None, two, None));
    assert!(!exchange(client, two, None, None));
    assert_eq!(client.state(&ANN), one);

    assert!(exchange(client, one, two, None));
    assert_eq!((client.state(&ANN), client.lifetime(&ANN)), (two, -1));
    assert!(exchange(client, two, None, None));
    assert_eq!(client.state(&ANN), None);
}

#[test]
fn any_expiry_is_one_that_an_engine_takes() {
    let client = &mut Client::new(Server::redis());
    for expires in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        client.flush();
        assert!(exchange(client, None, Some(state(1)), Some(expires)), "{expires:?}");
    }
    assert!(client.lifetime(&ANN) > 100 * 365 * 24 * 3_600_000);
}

#[test]
fn nodes_count_while_they_say_that_they_are_alive() {
    let client = &mut Client::new(Server::redis());
    let hour = Duration::from_secs(3600);
    assert_eq!(announce(client, ANN, hour), 1);
    assert_eq!(announce(client, ANN, hour), 1);
    assert_eq!(announce(client, BOB, hour), 2);
    // By now the last word of the other is older than that.
    assert_eq!(announce(client, BOB, Duration::from_micros(1)), 1);
}

#[test]
fn what_is_born_stays_born_then() {
    let client = &mut Client::new(Server::redis());
    let ann = born(client, ANN);
    assert!(ann > Timestamp::from_secs(1_700_000_000));
    let bob = born(client, BOB);
    assert!(bob > ann);
    assert_eq!((born(client, ANN), born(client, BOB)), (ann, bob));
}
