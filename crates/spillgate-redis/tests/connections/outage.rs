//! Servers that go away, stop, fill up or become replicas; networks that are slow or cut.

use std::sync::Arc;
use std::time::Duration;

use spillgate_redis::backend::Fault;
use spillgate_redis::client::Client;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::common::{Proxy, Server};
use crate::connections::asking::{ask, hammer, options, until_down, until_up};

/// As long as no call may ever take: the time-out, and what a busy machine adds.
const LONGEST: Duration = Duration::from_secs(1);

/// How many connections a server has of ours.
fn clients(server: &Server) -> usize {
    server.command("CLIENT LIST").lines().filter(|client| client.contains("cmd=evalsha")).count()
}

#[tokio::test]
async fn a_killed_server_is_noticed_without_a_call_and_used_again_when_it_is_back() {
    let mut server = Server::redis();
    let client = Client::connect(options(&server.url())).await.unwrap();
    ask(&client, 1).await.unwrap();
    for _ in 0..3 {
        server.kill();
        while client.health().outage.is_none() {
            sleep(Duration::from_millis(1)).await;
        }
        let error = ask(&client, 1).await.unwrap_err();
        assert_eq!(error.fault(), Fault::Unreachable);
        assert!(error.to_string().contains("(down for 0."), "{error}");
        server.start_again();
        until_up(&client).await;
    }
    let health = client.health();
    assert_eq!((health.connects, health.outages, health.in_flight), (4, 3, 0));
    assert_eq!(clients(&server), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_to_a_paused_server_time_out_and_then_fail_at_once() {
    let server = Server::redis();
    let client = Arc::new(Client::connect(options(&server.url())).await.unwrap());
    ask(&client, 1).await.unwrap();
    server.pause();
    assert!(ask(&client, 1).await.unwrap_err().is_unanswered());
    let outcome = hammer(client.clone(), Duration::from_secs(1)).await;
    assert_eq!(outcome.answered, 0);
    assert!(outcome.slowest < LONGEST, "{outcome:?}");
    assert!(!ask(&client, 1).await.unwrap_err().is_unanswered(), "it was not sent");
    let health = client.health();
    assert_eq!(health.outage.unwrap().fault(), Fault::Unreachable);
    assert!(health.rejected > health.time_outs, "most calls did not wait");
    assert_eq!((health.in_flight, health.outages), (0, 1));
    server.resume();
    until_up(&client).await;
    let outcome = hammer(client.clone(), Duration::from_millis(200)).await;
    assert!(outcome.answered > 0, "{outcome:?}");
    // What was given up meanwhile, it has to notice first.
    while clients(&server) > 1 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_slower_than_the_time_out_is_down_until_it_is_not() {
    let server = Server::redis();
    let proxy = Proxy::to(server.port).await;
    let client = Arc::new(Client::connect(options(&proxy.url())).await.unwrap());
    proxy.set_latency(Duration::from_millis(200));
    let outcome = hammer(client.clone(), Duration::from_millis(1500)).await;
    assert_eq!(outcome.answered, 0);
    assert!(outcome.slowest < LONGEST, "{outcome:?}");
    let health = client.health();
    assert_eq!(health.outage.unwrap().fault(), Fault::TimedOut);
    assert_eq!(health.outages, 1, "a probe that is late itself lets nobody through");
    proxy.set_latency(Duration::ZERO);
    until_up(&client).await;
    assert_eq!(clients(&server), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_replaced_at_once() {
    let server = Server::redis();
    let proxy = Proxy::to(server.port).await;
    let client = Arc::new(Client::connect(options(&proxy.url()).connections(2)).await.unwrap());
    for _ in 0..5 {
        proxy.cut();
        let outcome = hammer(client.clone(), Duration::from_millis(100)).await;
        assert!(outcome.slowest < LONGEST, "{outcome:?}");
        until_up(&client).await;
    }
    ask(&client, 1).await.unwrap();
    ask(&client, 1).await.unwrap();
    assert_eq!(clients(&server), 2);
    assert_eq!(proxy.connections(), 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_connection_is_given_up_after_a_few_time_outs() {
    let server = Server::redis();
    let proxy = Proxy::to(server.port).await;
    let client = Arc::new(Client::connect(options(&proxy.url())).await.unwrap());
    ask(&client, 1).await.unwrap();
    proxy.silence();
    let outcome = hammer(client.clone(), Duration::from_millis(500)).await;
    assert!(outcome.slowest < LONGEST, "{outcome:?}");
    assert!(outcome.answered > 0 && outcome.failed >= 3, "{outcome:?}");
    until_up(&client).await;
    assert_eq!(client.health().outages, 1);
    assert_eq!(proxy.connections(), 2);
    assert_eq!(client.health().in_flight, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_calls_wait_than_may() {
    let server = Server::redis();
    let client = Client::connect(options(&server.url()).in_flight(10)).await.unwrap();
    let client = Arc::new(client);
    ask(&client, 1).await.unwrap();
    server.pause();
    let outcome = hammer(client.clone(), Duration::from_millis(90)).await;
    assert_eq!(outcome.answered, 0);
    let health = client.health();
    // Until it counts as down, one that is given up makes no room for another: it is not answered.
    assert!(health.time_outs <= 10, "{health:?}");
    assert!(health.waited > 0 && health.rejected > 0, "{health:?}");
    server.resume();
    until_up(&client).await;
}

#[tokio::test]
async fn scripts_that_were_flushed_are_loaded_again() {
    let server = Server::redis();
    let client = Client::connect(options(&server.url())).await.unwrap();
    for _ in 0..3 {
        server.command("SCRIPT FLUSH");
        ask(&client, 1).await.unwrap();
    }
    assert_eq!(client.health().outages, 0);
}

#[tokio::test]
async fn scripts_that_were_flushed_are_loaded_once_for_all_calls_in_flight() {
    let server = Server::redis();
    let patient = options(&server.url()).command_time_out(Duration::from_secs(10));
    let client = Arc::new(Client::connect(patient).await.unwrap());
    let before = scripts_loaded(&server);
    server.command("SCRIPT FLUSH");
    let mut calls = JoinSet::new();
    for name in 0..100 {
        let client = client.clone();
        calls.spawn(async move { ask(&client, name).await.unwrap() });
    }
    calls.join_all().await;
    // As many as at the start.
    assert_eq!(scripts_loaded(&server), 2 * before);
}

/// How often a script was loaded.
fn scripts_loaded(server: &Server) -> u64 {
    let stats = server.command("INFO commandstats");
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_script|load:calls="));
    line.unwrap().split(',').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_server_that_accepts_no_more_writes_is_down_until_it_does() {
    no_more_writes(&Server::redis()).await;
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn an_old_server_that_accepts_no_more_writes_is_down_until_it_does() {
    no_more_writes(&Server::redis_6_2()).await;
}

async fn no_more_writes(server: &Server) {
    let client = Client::connect(options(&server.url())).await.unwrap();
    for (command, back, why) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "out of memory"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "replica"),
        (
            "CONFIG SET min-replicas-to-write 3",
            "CONFIG SET min-replicas-to-write 0",
            "`min-replicas-to-write`",
        ),
    ] {
        server.command(command);
        let message = until_down(&client, Fault::Unready).await;
        assert!(message.contains(why), "{message}");
        server.command(back);
        until_up(&client).await;
    }
    assert_eq!(clients(server), 1);
}

#[tokio::test]
async fn a_server_that_is_still_loading_is_not_used() {
    let mut server = Server::redis();
    let client = Client::connect(options(&server.url())).await.unwrap();
    let mut keys = redis::pipe();
    for key in 0..2000 {
        keys.cmd("SET").arg(key).arg("something");
    }
    keys.cmd("SAVE").exec(&mut server.admin()).unwrap();
    server.kill();
    server.start_loading();
    let message = until_down(&client, Fault::Unready).await;
    assert!(message.contains("still loading"), "{message}");
    until_up(&client).await;
}

#[tokio::test]
async fn a_password_that_is_changed_is_an_outage_until_it_is_right() {
    let server = Server::redis();
    let client = Client::connect(options(&server.url())).await.unwrap();
    server.command("ACL SETUSER default resetpass >hunter2");
    let mut admin = redis::Client::open(server.url().replace("//", "//:hunter2@"))
        .unwrap()
        .get_connection()
        .unwrap();
    redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec(&mut admin).unwrap();
    until_down(&client, Fault::Refused).await;
    redis::cmd("ACL").arg(&["SETUSER", "default", "nopass"]).exec(&mut admin).unwrap();
    until_up(&client).await;
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_nothing_behind() {
    let server = Server::redis();
    let client = Client::connect(options(&server.url())).await.unwrap();
    for name in 0..100 {
        let given_up = tokio::time::timeout(Duration::from_micros(10), ask(&client, name)).await;
        drop(given_up);
    }
    ask(&client, 1).await.unwrap();
    assert_eq!(client.health().in_flight, 0);
    drop(client);
    while clients(&server) > 0 {
        sleep(Duration::from_millis(1)).await;
    }
}
