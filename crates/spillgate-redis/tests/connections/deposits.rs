//! What is deposited at one connection is taken out at another, once.

use std::sync::Arc;
use std::time::Duration;

use spillgate_redis::Name;
use spillgate_redis::backend::Backend;
use spillgate_redis::client::Client;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::common::{Cluster, Server};
use crate::connections::asking::{PATIENCE, entry, options};

const MINUTE: Duration = Duration::from_secs(60);

/// Deposits something at one, and has many take it out at both.
async fn withdraw_at_once(one: &Client, both: [&Arc<Client>; 2], name: Name) {
    let kept = [&[0, 255, b'\r', b'\n'][..], name.as_bytes()].concat();
    one.deposit(name, &kept, MINUTE).await.unwrap();
    let mut asking = JoinSet::new();
    for client in both.into_iter().cycle().take(8) {
        let client = Arc::clone(client);
        asking.spawn(async move { client.withdraw(name).await.unwrap() });
    }
    let found: Vec<_> = asking.join_all().await.into_iter().flatten().collect();
    assert_eq!(found, [kept]);
}

async fn connect(url: &str) -> Arc<Client> {
    Arc::new(Client::connect(options(url)).await.unwrap())
}

#[tokio::test]
async fn of_many_who_withdraw_a_deposit_one_gets_it() {
    let server = Server::redis();
    let (one, other) = (connect(&server.url()).await, connect(&server.url()).await);
    for name in 0..20 {
        withdraw_at_once(&one, [&one, &other], entry(name).name).await;
    }
    assert_eq!(server.command("DBSIZE"), "0");
}

#[tokio::test]
async fn a_deposit_is_found_in_whatever_slot_it_is() {
    let cluster = Cluster::start(false);
    let (one, other) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    for name in 0..20 {
        withdraw_at_once(&one, [&one, &other], entry(name).name).await;
    }
}

#[tokio::test]
async fn a_deposit_ends_with_its_lifetime() {
    let server = Server::redis();
    let client = connect(&server.url()).await;
    let name = entry(1).name;
    client.deposit(name, b"kept", Duration::from_millis(1)).await.unwrap();
    let begin = Instant::now();
    while server.command("DBSIZE") != "0" {
        assert!(begin.elapsed() < PATIENCE, "it is still there");
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(client.withdraw(name).await.unwrap(), None);
}
