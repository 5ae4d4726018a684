//! Servers that share the slots of a Cluster.

use std::collections::HashSet;
use std::time::Duration;

use spillgate_redis::backend::{Backend, Fault};
use spillgate_redis::client::Client;
use tokio::time::{Instant, sleep};

use crate::common::{Cluster, MovingSlot, Server};
use crate::connections::asking::{PATIENCE, ask, entry, options, until_down};

/// The first name that lies in a slot of `range`.
fn name_in(client: &Client, range: std::ops::RangeInclusive<u16>) -> u64 {
    (0..).find(|name| range.contains(&client.slot(&entry(*name).name))).unwrap()
}

/// Waits until somebody answers about a name.
async fn until_answered(client: &Client, name: u64) {
    let begin = Instant::now();
    while let Err(error) = ask(client, name).await {
        assert!(begin.elapsed() < PATIENCE, "still: {error}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn each_name_is_asked_about_where_its_slot_is() {
    let cluster = Cluster::start(false);
    let client = Client::connect(options(&cluster.url())).await.unwrap();
    let slots: HashSet<_> = (0..100).map(|name| client.slot(&entry(name).name)).collect();
    assert!(slots.len() > 90);
    for name in 0..100 {
        ask(&client, name).await.unwrap();
    }
    for node in &cluster.masters {
        let keys: u32 = node.command("DBSIZE").parse().unwrap();
        assert!((10..70).contains(&keys), "{keys} of 100 keys on one of three nodes");
    }
    let health = client.health();
    assert_eq!((health.outage, health.failures, health.in_flight), (None, 0, 0));

    // While a slot moves from the first node to the second, it is used.
    let name = name_in(&client, 0..=5460);
    ask(&client, name).await.unwrap();
    let moving = MovingSlot::begin(&cluster, client.slot(&entry(name).name));
    ask(&client, name).await.unwrap();
    moving.move_keys(1);
    // The node that has the slot says where the key is.
    ask(&client, name).await.unwrap();
    assert_eq!(moving.end(), (0, 1));
    for _ in 0..10 {
        ask(&client, name).await.unwrap();
    }
    assert_eq!(client.health().outages, 0);
}

#[tokio::test]
async fn a_replica_takes_over_and_other_nodes_are_not_affected() {
    let mut cluster = Cluster::start(true);
    let client = Client::connect(options(&cluster.url())).await.unwrap();
    let (lost, other) = (name_in(&client, 0..=5460), name_in(&client, 5461..=16383));
    ask(&client, lost).await.unwrap();
    cluster.masters[0].kill();
    while client.health().outage.is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(ask(&client, lost).await.unwrap_err().fault(), Fault::Unreachable);
    ask(&client, other).await.unwrap();
    until_answered(&client, lost).await;
    assert!(cluster.replica.unwrap().command("INFO replication").contains("role:master"));
    while client.health().outage.is_some() {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_replica_that_takes_over_on_purpose_is_no_outage() {
    let cluster = Cluster::start(true);
    // Nodes wait for each other before they hand over.
    let patient = options(&cluster.url()).command_time_out(Duration::from_secs(5));
    let client = Client::connect(patient).await.unwrap();
    let name = name_in(&client, 0..=5460);
    ask(&client, name).await.unwrap();
    let replica = cluster.replica.as_ref().unwrap();
    let mut message = replica.try_to_tell("CLUSTER FAILOVER");
    while !replica.command("INFO replication").contains("role:master") {
        ask(&client, name).await.unwrap();
        // On a busy machine nodes may take each other for dead for a moment.
        if message.is_err() {
            message = replica.try_to_tell("CLUSTER FAILOVER");
        }
    }
    ask(&client, name).await.unwrap();
    assert_eq!(client.health().outages, 0);
    assert!(replica.command("CLIENT LIST").contains("cmd=evalsha"));
}

#[tokio::test]
async fn a_cluster_may_be_away_at_the_start() {
    let mut cluster = Cluster::start(false);
    let url = cluster.url();
    cluster.masters.iter_mut().for_each(Server::kill);
    let error = Client::connect(options(&url)).await.map(|_| ()).unwrap_err();
    assert_eq!(error.fault(), Fault::Unreachable, "{error}");
    let client = Client::connect_later(options(&url)).unwrap();
    assert!(ask(&client, 1).await.is_err());
    cluster.masters.iter_mut().for_each(Server::start_again);
    for name in 0..20 {
        until_answered(&client, name).await;
    }
}

#[tokio::test]
async fn a_node_that_may_drop_keys_is_refused_at_the_start_whichever_it_is() {
    let cluster = Cluster::start(false);
    for node in &cluster.masters {
        node.command("CONFIG SET maxmemory 100mb");
    }
    for node in &cluster.masters {
        node.command("CONFIG SET maxmemory-policy allkeys-lru");
        let error = Client::connect(options(&cluster.url())).await.map(|_| ()).unwrap_err();
        assert_eq!(error.fault(), Fault::Misconfigured);
        let why = format!(":{} has `maxmemory-policy allkeys-lru`", node.port);
        assert!(error.to_string().contains(&why), "{error}");
        let later = Client::connect_later(options(&cluster.url())).unwrap();
        assert!(until_down(&later, Fault::Misconfigured).await.contains(&why));
        node.command("CONFIG SET maxmemory-policy noeviction");
        for name in 0..20 {
            until_answered(&later, name).await;
        }
    }
    // Not once all were found fit.
    let client = Client::connect(options(&cluster.url())).await.unwrap();
    let last = &cluster.masters[2];
    last.command("CONFIG SET maxmemory-policy allkeys-lru");
    last.command("CLIENT KILL TYPE normal");
    let begin = Instant::now();
    while client.warnings().may_evict.is_none() {
        assert!(begin.elapsed() < PATIENCE, "{:?}", client.health());
        sleep(Duration::from_millis(5)).await;
    }
    for name in 0..20 {
        until_answered(&client, name).await;
    }
}

#[tokio::test]
async fn a_node_and_a_server_of_its_own_are_not_mistaken_for_each_other() {
    let node = Server::redis_with(&["--cluster-enabled", "yes"]);
    let error = Client::connect(options(&node.url())).await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("begin the URL with redis+cluster://"), "{error}");
    let single = Server::redis();
    let url = single.url().replace("redis://", "redis+cluster://");
    let error = Client::connect(options(&url)).await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("begin the URL with redis://"), "{error}");
}
