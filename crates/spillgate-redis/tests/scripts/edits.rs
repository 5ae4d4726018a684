//! The scripts keep edits as the model does.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spillgate_redis::Name;
use spillgate_redis::backend::{Backend, EditPage, Fault, Lasts, Model, SealedEdit};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::script::{self, Keys};
use tokio::runtime::Runtime;

use crate::common::{Server, eventually, real_time};

#[derive(Clone, Debug)]
enum Step {
    Publish(Vec<SealedEdit>),
    /// So many versions after the first.
    Since(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lasts = prop_oneof![
        Just(Lasts::Forever),
        Just(Lasts::For(Duration::from_secs(3600))),
        Just(Lasts::Ended)
    ];
    let edit = (0..5_u8, lasts, proptest::collection::vec(any::<u8>(), 0..40)).prop_map(
        |(name, lasts, sealed)| SealedEdit { name: Name::from_bytes([name; 16]), lasts, sealed },
    );
    let step = prop_oneof![
        proptest::collection::vec(edit, 1..4).prop_map(Step::Publish),
        (0..20_u64).prop_map(Step::Since),
    ];
    proptest::collection::vec(step, 1..20)
}

/// With versions counted from the first, and what remains in hours.
fn in_short(page: EditPage, first: u64) -> EditPage {
    let round = |edit: SealedEdit| match edit.lasts {
        Lasts::For(left) => {
            let hours = (left.as_secs_f64() / 3600.0).round() as u64;
            SealedEdit { lasts: Lasts::For(Duration::from_secs(3600 * hours)), ..edit }
        }
        _ => edit,
    };
    let edits = page.edits.into_iter().map(round).collect();
    EditPage { history: 0, version: page.version.saturating_sub(first), edits, ..page }
}

/// Carries out the same on a server and on the model.
async fn play(server: &Client, steps: &[Step]) {
    let model = Model::new(spillgate::Timestamp::from_nanos(real_time()));
    let mut first = None;
    for step in steps {
        match step {
            Step::Publish(edits) => {
                assert!(
                    server.publish(edits).await.unwrap() && model.publish(edits).await.unwrap()
                );
                if first.is_none() {
                    let real = server.edits_since(0).await.unwrap().version;
                    let modelled = model.edits_since(0).await.unwrap().version;
                    first = Some([real, modelled].map(|version| version - edits.len() as u64));
                }
            }
            Step::Since(after) => {
                let [real, modelled] = first.unwrap_or_default();
                let (there, here) = (
                    server.edits_since(real + after).await.unwrap(),
                    model.edits_since(modelled + after).await.unwrap(),
                );
                assert_eq!(in_short(there, real), in_short(here, modelled));
            }
        }
    }
}

#[test]
fn the_scripts_keep_edits_as_the_model_does() {
    for (server, cases) in [
        (Server::redis(), 100),
        (Server::valkey(), 30),
        #[cfg(target_arch = "x86_64")]
        (Server::redis_6_2(), 30),
    ] {
        let runtime = Runtime::new().unwrap();
        let connect = Client::connect(Options::new(&server.url()).unwrap());
        let client = runtime.block_on(connect).unwrap();
        let mut runner = TestRunner::new(Config { cases, ..Config::default() });
        let played = runner.run(&steps(), |steps| {
            server.command("FLUSHDB");
            runtime.block_on(play(&client, &steps));
            Ok(())
        });
        played.unwrap();
    }
}

fn edit(name: u8, lasts: Lasts) -> SealedEdit {
    SealedEdit { name: Name::from_bytes([name; 16]), lasts, sealed: vec![0, 255, 13, 10] }
}

/// How long the key is kept, in milliseconds.
fn lifetime(server: &Server) -> i64 {
    redis::cmd("PTTL").arg(&Keys::default().edits()[..]).query(&mut server.admin()).unwrap()
}

#[tokio::test]
async fn the_key_is_kept_as_long_as_an_edit_and_a_day() {
    let server = Server::redis();
    let client = Client::connect(Options::new(&server.url()).unwrap()).await.unwrap();
    let (hour, day) = (3_600_000, 86_400_000);
    let ending = edit(1, Lasts::For(Duration::from_secs(3600)));
    client.publish(&[ending, edit(2, Lasts::Ended)]).await.unwrap();
    let later = hour + day - 60_000..=hour + day + 1_000;
    assert!(later.contains(&lifetime(&server)), "{}", lifetime(&server));
    client.publish(&[edit(3, Lasts::Forever)]).await.unwrap();
    assert_eq!(lifetime(&server), -1);
    client.publish(&[edit(3, Lasts::Ended)]).await.unwrap();
    assert!(later.contains(&lifetime(&server)), "{}", lifetime(&server));
}

#[tokio::test]
async fn what_ended_more_than_a_day_ago_is_deleted() {
    let server = Server::redis();
    let client = Client::connect(Options::new(&server.url()).unwrap()).await.unwrap();
    client.publish(&[edit(1, Lasts::Ended), edit(2, Lasts::Forever)]).await.unwrap();
    let key = Keys::default().edits();
    let mut admin = server.admin();
    let long_ago = real_time() / 1_000_000 - 86_400_000;
    let ending = [b"e", &[1_u8; 16][..]].concat();
    let mut age = redis::cmd("ZADD");
    age.arg(&key[..]).arg("XX").arg("CH").arg(long_ago - 1).arg(ending);
    assert_eq!(age.query::<i64>(&mut admin).unwrap(), 1);
    let last = client.edits_since(u64::MAX >> 12).await.unwrap();
    assert_eq!(last.edits, [edit(2, Lasts::Forever)]);
    let count: i64 = redis::cmd("ZCARD").arg(&key[..]).query(&mut admin).unwrap();
    assert_eq!(count, 3, "it, its version, and the last version");
}

/// Otherwise one that has read a later version would miss what is published next.
#[tokio::test]
async fn the_version_does_not_go_back_when_the_last_edit_is_deleted() {
    let server = Server::redis();
    let client = Client::connect(Options::new(&server.url()).unwrap()).await.unwrap();
    client.publish(&[edit(1, Lasts::Forever), edit(2, Lasts::Ended)]).await.unwrap();
    let seen = client.edits_since(0).await.unwrap().version;
    let ending = [b"e", &[2_u8; 16][..]].concat();
    let mut age = redis::cmd("ZADD");
    age.arg(&Keys::default().edits()[..]).arg(1).arg(ending).exec(&mut server.admin()).unwrap();
    client.publish(&[edit(3, Lasts::Forever)]).await.unwrap();
    let page = client.edits_since(seen).await.unwrap();
    assert_eq!((page.version, page.edits), (seen + 1, vec![edit(3, Lasts::Forever)]));
    assert_eq!(client.edits_since(0).await.unwrap().edits.len(), 2, "the second is gone");
}

#[tokio::test]
async fn a_replica_that_takes_over_has_a_history_of_its_own() {
    let (master, replica) = (Server::redis(), Server::redis());
    let client = Client::connect(Options::new(&master.url()).unwrap()).await.unwrap();
    client.publish(&[edit(1, Lasts::Forever)]).await.unwrap();
    let history = async |client: &Client| client.edits_since(0).await.unwrap().history;
    let before = history(&client).await;
    assert_eq!((before, before > 0), (history(&client).await, true));
    replica.command(&format!("REPLICAOF 127.0.0.1 {}", master.port));
    eventually("the replica follows", || {
        replica.command("INFO replication").contains("master_link_status:up")
    });
    replica.command("REPLICAOF NO ONE");
    let client = Client::connect(Options::new(&replica.url()).unwrap()).await.unwrap();
    assert_eq!(client.edits_since(0).await.unwrap().edits, [edit(1, Lasts::Forever)]);
    assert_ne!(history(&client).await, before);
}

#[tokio::test]
async fn edits_of_an_earlier_version_are_refused_with_what_to_do() {
    let server = Server::redis();
    let client = Client::connect(Options::new(&server.url()).unwrap()).await.unwrap();
    let key = Keys::default().edits();
    let mut older = redis::cmd("HSET");
    older.arg(&key[..]).arg("version").arg(3).exec(&mut server.admin()).unwrap();
    for error in [
        client.publish(&[edit(1, Lasts::Forever)]).await.unwrap_err(),
        client.edits_since(0).await.unwrap_err(),
    ] {
        assert_eq!(error.fault(), Fault::Corrupt);
        let told = "delete the key (redis-cli DEL 'spillgate:{edits}')";
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn more_edits_than_there_may_be_are_refused_and_known_ones_may_change() {
    let server = Server::redis();
    let mut admin = server.admin();
    let mut publish = |edits: &[SealedEdit]| -> i64 {
        let mut call = redis::cmd("EVAL");
        call.arg(script::PUBLISH).arg(1).arg(&Keys::default().edits()[..]);
        // Two, not a million.
        call.arg(2);
        let edits = script::publish(edits);
        call.arg(edits[1..].iter().map(|edit| &edit[..]).collect::<Vec<_>>());
        call.query(&mut admin).unwrap()
    };
    let [one, two, three] = [1, 2, 3].map(|name| edit(name, Lasts::Forever));
    assert_eq!(publish(&[one.clone(), two, one.clone()]), 1);
    assert_eq!(publish(&[one.clone(), three.clone()]), 0);
    assert_eq!(publish(&[one, edit(2, Lasts::Ended)]), 1);
    assert_eq!(publish(&[three]), 0, "that it was undone is known for a day");
}
