//! The scripts keep edits as the model does.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spillgate_redis::Name;
use spillgate_redis::backend::{Backend, EditPage, Lasts, Model, SealedEdit};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::script::{self, Keys};
use tokio::runtime::Runtime;

use crate::common::{Cluster, Server, real_time};

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
    EditPage { version: page.version.saturating_sub(first), edits, ..page }
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

/// How long the keys are kept, in milliseconds.
fn lifetimes(server: &Server) -> Vec<i64> {
    let ttl = |key: &script::Key| redis::cmd("PTTL").arg(&key[..]).query(&mut server.admin());
    Keys::default().edits().iter().map(|key| ttl(key).unwrap()).collect()
}

#[tokio::test]
async fn keys_are_kept_as_long_as_an_edit_and_a_day() {
    let server = Server::redis();
    let client = Client::connect(Options::new(&server.url()).unwrap()).await.unwrap();
    let (hour, day) = (3_600_000, 86_400_000);
    let ending = edit(1, Lasts::For(Duration::from_secs(3600)));
    client.publish(&[ending, edit(2, Lasts::Ended)]).await.unwrap();
    let is_later = |ttl: &i64| (hour + day - 60_000..=hour + day + 1_000).contains(ttl);
    assert!(lifetimes(&server).iter().all(is_later), "{:?}", lifetimes(&server));
    client.publish(&[edit(3, Lasts::Forever)]).await.unwrap();
    assert_eq!(lifetimes(&server), [-1; 3]);
    client.publish(&[edit(3, Lasts::Ended)]).await.unwrap();
    assert!(lifetimes(&server).iter().all(is_later), "{:?}", lifetimes(&server));
}

#[tokio::test]
async fn what_ended_more_than_a_day_ago_is_deleted() {
    let server = Server::redis();
    let client = Client::connect(Options::new(&server.url()).unwrap()).await.unwrap();
    client.publish(&[edit(1, Lasts::Ended), edit(2, Lasts::Forever)]).await.unwrap();
    let [values, versions, ends] = Keys::default().edits();
    let mut admin = server.admin();
    let long_ago = real_time() / 1_000_000 - 86_400_000;
    let mut age = redis::cmd("ZADD");
    age.arg(&ends[..]).arg(long_ago).arg(&[1_u8; 16]).exec(&mut admin).unwrap();
    assert_eq!(client.edits_since(0).await.unwrap().edits, [edit(2, Lasts::Forever)]);
    for (command, key, left) in [("HLEN", values, 2), ("ZCARD", versions, 1), ("ZCARD", ends, 0)] {
        let count: i64 = redis::cmd(command).arg(&key[..]).query(&mut admin).unwrap();
        assert_eq!(count, left, "{command}: the version is a field as well");
    }
}

#[test]
fn more_edits_than_there_may_be_are_refused_and_known_ones_may_change() {
    let server = Server::redis();
    let mut admin = server.admin();
    let mut publish = |edits: &[SealedEdit]| -> i64 {
        let mut call = redis::cmd("EVAL");
        call.arg(script::PUBLISH).arg(3);
        call.arg(&Keys::default().edits().each_ref().map(|key| &key[..]));
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

#[tokio::test]
async fn in_a_cluster_edits_are_in_one_slot() {
    let cluster = Cluster::start(false);
    let client = Client::connect(Options::new(&cluster.url()).unwrap()).await.unwrap();
    let edits: Vec<_> = (0..9).map(|name| edit(name, Lasts::Forever)).collect();
    client.publish(&edits).await.unwrap();
    assert_eq!(client.edits_since(0).await.unwrap().edits, edits);
}
