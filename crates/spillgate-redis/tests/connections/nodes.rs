//! Nodes of a Cluster that redirect, are slow, or are down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use spillgate_redis::Name;
use spillgate_redis::backend::{Backend, BackendError, Fault};
use spillgate_redis::client::{Client, Options};
use spillgate_testing::Port;
use tokio::time::{Instant, sleep};

use crate::common::{FakeNode, slots};

const TIME_OUT: Duration = Duration::from_millis(300);

/// More than a busy machine adds to it.
const LATE: Duration = Duration::from_millis(90);

fn options(url: &str) -> Options {
    let options = Options::new(url).unwrap().connect_time_out(Duration::from_secs(5));
    options.command_time_out(TIME_OUT).probe_interval(Duration::from_millis(10))
}

/// Deletes a key: a command that needs no script.
async fn delete(client: &Client) -> Result<(), BackendError> {
    client.forget(Name::from_bytes([7; 16])).await
}

/// Has the slot map refreshed, since a node answers with an error.
async fn err(client: &Client) {
    client.withdraw(Name::from_bytes([7; 16])).await.unwrap_err();
}

/// A node that redirects deletions to a port, as while slots migrate.
async fn asking(to: u16) -> FakeNode {
    FakeNode::start(Duration::ZERO, move |words| match words[0].as_str() {
        "DEL" => Some(format!("-ASK 1 127.0.0.1:{to}\r\n")),
        "GETDEL" => Some("-ERR an error\r\n".to_owned()),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_call_is_late_at_its_time_out_however_long_the_next_node_takes_to_connect() {
    // It is connected to after a few of these.
    let slow = FakeNode::start(Duration::from_millis(80), |words| {
        (words[0] == "CLUSTER").then(|| slots(&[]))
    })
    .await;
    let node = asking(slow.port).await;
    let client = Client::connect(options(&node.url())).await.unwrap();
    let begin = Instant::now();
    let late = delete(&client).await.unwrap_err();
    assert_eq!(late.fault(), Fault::TimedOut, "{late}");
    assert!(begin.elapsed() < TIME_OUT + LATE, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_node_to_which_slots_migrate_stays_connected() {
    let other = FakeNode::start(Duration::ZERO, |_| None).await;
    let node = asking(other.port).await;
    let client = Client::connect(options(&node.url())).await.unwrap();
    for _ in 0..5 {
        let asked = node.count("CLUSTER SLOTS");
        delete(&client).await.unwrap();
        err(&client).await;
        while node.count("CLUSTER SLOTS") == asked {
            sleep(Duration::from_millis(5)).await;
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(other.connections(), 1);
}

#[tokio::test]
async fn nodes_that_are_up_are_asked_ever_less_often_while_another_is_down() {
    let (dead, own) = (Port::reserve(), Arc::new(OnceLock::new()));
    let (down, is_one_down) = (dead.number(), own.clone());
    let node = FakeNode::start(Duration::ZERO, move |words| match words[0].as_str() {
        "CLUSTER" => is_one_down.get().map(|own| slots(&[(0, 8191, down), (8192, 16383, *own)])),
        "GETDEL" => Some("-ERR an error\r\n".to_owned()),
        _ => None,
    })
    .await;
    let client = Client::connect(options(&node.url())).await.unwrap();
    own.set(node.port).unwrap();
    err(&client).await;
    sleep(Duration::from_millis(50)).await;
    let before = node.count("CLUSTER SLOTS");
    sleep(Duration::from_millis(600)).await;
    let asked = node.count("CLUSTER SLOTS") - before;
    assert!(asked <= 8, "asked {asked} times");
}

#[tokio::test]
async fn a_call_whose_script_was_lost_is_late_at_its_time_out() {
    let is_flushed = Arc::new(AtomicBool::new(false));
    let is_gone = is_flushed.clone();
    let node = FakeNode::start(Duration::from_millis(130), move |words| {
        let is_gone = is_gone.load(Ordering::SeqCst) && words[0] == "EVALSHA";
        is_gone.then(|| "-NOSCRIPT No matching script\r\n".to_owned())
    })
    .await;
    let client = Client::connect(options(&node.url())).await.unwrap();
    is_flushed.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    let late = client.edits_since(0).await.unwrap_err();
    assert_eq!(late.fault(), Fault::TimedOut, "{late}");
    assert!(begin.elapsed() < TIME_OUT + LATE, "{:?}", begin.elapsed());
}
