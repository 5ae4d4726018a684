//! A master that is found by Sentinels.

use std::sync::Arc;
use std::time::Duration;

use spillgate_redis::backend::Fault;
use spillgate_redis::client::{Client, Options};
use tokio::time::sleep;

use crate::common::{Sentinels, Server, eventually};
use crate::connections::asking::{ask, hammer, options, until_up};

#[tokio::test]
async fn calls_follow_the_master_when_another_is_made() {
    let mut sentinels = Sentinels::start();
    sentinels.kill(0);
    let client = Client::connect(options(&sentinels.url())).await.unwrap();
    ask(&client, 1).await.unwrap();
    sentinels.master.kill();
    // For as long as Sentinels take to agree there is nobody to ask.
    sleep(Duration::from_millis(100)).await;
    assert_eq!(ask(&client, 1).await.unwrap_err().fault(), Fault::Unreachable);
    until_up(&client).await;
    assert!(sentinels.replica.command("INFO replication").contains("role:master"));
    assert!(sentinels.replica.command("DBSIZE") != "0");
}

#[tokio::test]
async fn calls_follow_the_master_when_it_is_exchanged_on_purpose() {
    let sentinels = Sentinels::start();
    let client = Client::connect(options(&sentinels.url())).await.unwrap();
    ask(&client, 1).await.unwrap();
    sentinels.exchange_master();
    while !sentinels.replica.command("CLIENT LIST").contains("cmd=evalsha") {
        let _ = ask(&client, 1).await;
        sleep(Duration::from_millis(5)).await;
    }
    until_up(&client).await;
    assert!(sentinels.replica.command("INFO replication").contains("role:master"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_failover_is_no_outage_at_the_default_time_out() {
    let sentinels = Sentinels::start();
    let defaults = Options::new(&sentinels.url()).unwrap();
    let client = Arc::new(Client::connect(defaults).await.unwrap());
    let subscribed = || (0..3).all(|place| sentinels.subscribers(place) == 1);
    eventually("it is subscribed at all of them", subscribed);
    let calls = tokio::spawn(hammer(client.clone(), Duration::from_secs(3)));
    sentinels.exchange_master();
    let outcome = calls.await.unwrap();
    let health = client.health();
    assert_eq!((health.outages, health.connects), (0, 2), "{outcome:?}, {health:?}");
    assert_eq!(outcome.failed, 0, "{outcome:?}");
    assert!(sentinels.replica.command("INFO replication").contains("role:master"));
}

#[tokio::test]
async fn sentinels_that_know_nothing_are_named() {
    let server = Server::redis();
    let url = format!("redis+sentinel://127.0.0.1:{}/main", server.port);
    let error = Client::connect(options(&url)).await.map(|_| ()).unwrap_err();
    let why = format!("no Sentinel knows the master of `main`: 127.0.0.1:{}", server.port);
    assert!(error.to_string().contains(&why), "{error}");
    let sentinels = Sentinels::start();
    let url = sentinels.url().replace("/main", "/mian");
    let error = Client::connect(options(&url)).await.map(|_| ()).unwrap_err();
    assert_eq!(error.fault(), Fault::Misconfigured);
    assert!(error.to_string().contains("knows no service `mian`"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_ask_for_no_more_than_is_documented_and_their_password_can_be_rotated() {
    let sentinels = Sentinels::start();
    let tell_all = |command: &str| {
        let words: Vec<_> = command.split(' ').collect();
        for place in 0..3 {
            redis::cmd(words[0]).arg(&words[1..]).exec(&mut sentinels.admin(place)).unwrap();
        }
    };
    tell_all(
        "ACL SETUSER limiter reset on >first &* +sentinel|get-master-addr-by-name +subscribe +ping",
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "first").unwrap();
    let options = options(&sentinels.url()).sentinel_user("limiter");
    let options = options.sentinel_password_file(file.path());
    let client = Client::connect(options).await.unwrap();
    let subscribed = || (0..3).all(|place| sentinels.subscribers(place) == 1);
    eventually("it is subscribed at all of them", subscribed);
    std::fs::write(file.path(), "second").unwrap();
    tell_all("ACL SETUSER limiter >second <first");
    tell_all("CLIENT KILL USER limiter");
    eventually("it is subscribed again", subscribed);
    sentinels.exchange_master();
    while !sentinels.replica.command("CLIENT LIST").contains("cmd=evalsha") {
        let _ = ask(&client, 1).await;
        sleep(Duration::from_millis(5)).await;
    }
}
