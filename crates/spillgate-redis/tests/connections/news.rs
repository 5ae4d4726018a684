//! What Sentinels tell of failovers, in time, late or never.

use std::sync::Arc;
use std::time::Duration;

use spillgate_redis::client::{Client, Options};
use tokio::time::{Instant, sleep};

use crate::common::{FakeSentinel, Server};
use crate::connections::asking::{PATIENCE, ask, hammer, options, scripts_run};

const PROMOTING: &str = "+failover-state-send-slaveof-noone";

/// A master, a replica, and who tells of them.
struct FailoverScene {
    master: Server,
    replica: Server,
    sentinel: FakeSentinel,
}

impl FailoverScene {
    async fn new(may_subscribe: bool) -> Self {
        let master = Server::redis_with(&["--repl-diskless-sync-delay", "0"]);
        let of = master.port.to_string();
        let replica = Server::redis_with(&["--replicaof", "127.0.0.1", &of]);
        let sentinel = FakeSentinel::start(master.port, may_subscribe).await;
        Self { master, replica, sentinel }
    }

    /// Calls wait for longer than a replica that is to be the master is waited for.
    fn options(&self) -> Options {
        options(&self.sentinel.url()).command_time_out(PATIENCE)
    }

    async fn until_subscribed(&self) {
        while self.sentinel.subscribers().await == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// What is published of a replica that is to be the master in place of another.
    fn promotion(&self, from: u16) -> String {
        let to = self.replica.port;
        format!("slave 127.0.0.1:{to} 127.0.0.1 {to} @ main 127.0.0.1 {from}")
    }
}

/// Asks until a server is asked.
async fn until_used(client: &Client, server: &Server) {
    let (begin, before) = (Instant::now(), scripts_run(server));
    while scripts_run(server) <= before + 1 {
        assert!(begin.elapsed() < PATIENCE, "it was never asked");
        let _ = ask(client, 1).await;
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn calls_wait_for_a_replica_that_is_to_be_the_master_and_stay_there() {
    let scene = FailoverScene::new(true).await;
    let client = Client::connect(scene.options()).await.unwrap();
    scene.until_subscribed().await;
    ask(&client, 1).await.unwrap();
    scene.sentinel.publish(PROMOTING, &scene.promotion(scene.master.port)).await;
    // Heard, but not promoted yet.
    sleep(Duration::from_millis(100)).await;
    let before = scripts_run(&scene.master);
    let promote = async {
        sleep(Duration::from_millis(100)).await;
        scene.replica.command("REPLICAOF NO ONE");
    };
    let (asked, ()) = tokio::join!(ask(&client, 1), promote);
    asked.unwrap();
    assert_eq!(scripts_run(&scene.master), before, "nothing was counted where it is forgotten");
    // The Sentinel is yet to hear of it, which is no reason to go back.
    sleep(Duration::from_secs(3)).await;
    ask(&client, 1).await.unwrap();
    scene.sentinel.publish("+switch-master", "main 127.0.0.1 1 127.0.0.1 2").await;
    sleep(Duration::from_millis(100)).await;
    ask(&client, 1).await.unwrap();
    assert_eq!(scripts_run(&scene.master), before);
    assert_eq!((client.health().outages, client.health().connects), (0, 2));
}

#[tokio::test]
async fn a_connection_that_is_lost_after_a_failover_does_not_lead_back() {
    let scene = FailoverScene::new(true).await;
    let client = Client::connect(scene.options()).await.unwrap();
    scene.until_subscribed().await;
    ask(&client, 1).await.unwrap();
    scene.replica.command("REPLICAOF NO ONE");
    scene.sentinel.publish(PROMOTING, &scene.promotion(scene.master.port)).await;
    until_used(&client, &scene.replica).await;
    let before = scripts_run(&scene.master);
    // The Sentinel still names the old one.
    scene.replica.command("CLIENT KILL TYPE normal SKIPME yes");
    sleep(Duration::from_millis(50)).await;
    until_used(&client, &scene.replica).await;
    assert_eq!(scripts_run(&scene.master), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_held_back_are_not_late() {
    // Longer than the time-out, which is the default.
    const HELD: Duration = Duration::from_millis(600);
    let scene = FailoverScene::new(true).await;
    let defaults = Options::new(&scene.sentinel.url()).unwrap();
    let client = Arc::new(Client::connect(defaults).await.unwrap());
    scene.until_subscribed().await;
    ask(&client, 1).await.unwrap();
    scene.sentinel.publish(PROMOTING, &scene.promotion(scene.master.port)).await;
    sleep(Duration::from_millis(100)).await;
    let before = scripts_run(&scene.master);
    let calls = tokio::spawn(hammer(client.clone(), HELD / 3));
    sleep(HELD).await;
    scene.replica.command("REPLICAOF NO ONE");
    let outcome = calls.await.unwrap();
    assert_eq!(outcome.failed, 0, "{outcome:?}");
    assert_eq!(scripts_run(&scene.master), before);
    let health = client.health();
    assert_eq!((health.outages, health.time_outs, health.connects), (0, 0, 2));
}

#[tokio::test]
async fn calls_that_were_held_back_for_nothing_are_made_where_they_would_have_been() {
    let scene = FailoverScene::new(true).await;
    let client = Client::connect(Options::new(&scene.sentinel.url()).unwrap()).await.unwrap();
    scene.until_subscribed().await;
    scene.sentinel.publish(PROMOTING, &scene.promotion(scene.master.port)).await;
    sleep(Duration::from_millis(100)).await;
    let (begin, before) = (Instant::now(), scripts_run(&scene.master));
    ask(&client, 1).await.unwrap();
    assert!(begin.elapsed() > Duration::from_millis(500), "it was not held back");
    assert_eq!(scripts_run(&scene.master), before + 1);
    assert_eq!((client.health().outages, client.health().time_outs), (0, 0));
}

#[tokio::test]
async fn late_news_of_a_failover_that_is_long_over_change_nothing() {
    let scene = FailoverScene::new(true).await;
    let client = Client::connect(scene.options()).await.unwrap();
    scene.until_subscribed().await;
    let of_master = scene.promotion(scene.master.port);
    // Of one that is a replica again.
    scene.sentinel.publish("+promoted-slave", &of_master).await;
    scene.sentinel.publish("+switch-master", "main 127.0.0.1 1 127.0.0.1 2").await;
    ask(&client, 1).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    // Of one that is a master, but in place of another, or of another service.
    scene.replica.command("REPLICAOF NO ONE");
    scene.sentinel.publish(PROMOTING, &scene.promotion(1)).await;
    scene.sentinel.publish(PROMOTING, &of_master.replace("main", "other")).await;
    let before = scripts_run(&scene.replica);
    for _ in 0..20 {
        ask(&client, 1).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(scripts_run(&scene.replica), before);
    assert_eq!((client.health().outages, client.health().connects), (0, 1));
}

#[tokio::test]
async fn a_subscription_that_has_ended_is_replaced() {
    let scene = FailoverScene::new(true).await;
    let client = Client::connect(scene.options()).await.unwrap();
    scene.until_subscribed().await;
    scene.sentinel.cut().await;
    scene.until_subscribed().await;
    scene.replica.command("REPLICAOF NO ONE");
    scene.sentinel.publish("+promoted-slave", &scene.promotion(scene.master.port)).await;
    until_used(&client, &scene.replica).await;
    assert_eq!(client.health().outages, 0);
}

#[tokio::test]
async fn a_master_is_followed_also_where_nothing_may_be_subscribed_to() {
    let scene = FailoverScene::new(false).await;
    let client = Client::connect(scene.options()).await.unwrap();
    ask(&client, 1).await.unwrap();
    scene.replica.command("REPLICAOF NO ONE");
    scene.sentinel.set_master(scene.replica.port);
    until_used(&client, &scene.replica).await;
    assert_eq!(client.health().outages, 0);
}
