//! What docs/cluster.md says that a user must be allowed is enough, and all of it is needed.

use spillgate_testing::CheckLimit;
use std::time::Duration;

use futures_util::future::join_all;
use redis::Value;
use spillgate_policy::{Gate, LimitCheck, Limits, Policy, Terms};
use spillgate_redis::backend::Fault;
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};
use tokio::time::sleep;

use crate::common::{Cluster, Sentinels, Server};
use crate::connections::asking::options;
use crate::connections::start::{assert_refused, use_all};

const DOCUMENT: &str = include_str!("../../../../docs/cluster.md");

/// The documented command that makes a user, with a password.
fn documented() -> String {
    let line = DOCUMENT.lines().find(|line| line.starts_with("ACL SETUSER spillgate "));
    line.unwrap().replace("PASSWORD", "hunter2")
}

/// The permissions that follow these words.
fn documented_after(words: &str) -> &'static str {
    let rest = DOCUMENT.split(words).nth(1).unwrap_or_else(|| panic!("{words}"));
    rest.split('`').nth(1).unwrap()
}

fn login(options: Options) -> Options {
    options.user("spillgate").password("hunter2")
}

const POLICY: &str = "\
    [[limit]]\nname = 'strict'\nby-name = true\nper = 'user'\nquota = '10/h'\nstart = 'empty'\n\
    [[limit]]\nname = 'leased'\nby-name = true\nper = 'user'\nquota = '1000/s burst 2000'\n\
    sharing = 'leased'\n\
    [[limit]]\nname = 'window'\nby-name = true\nper = 'user'\nquota = '10/h'\n\
    algorithm = 'sliding-window'\n";

/// Does whatever a node does, for longer than it takes it to look around again.
async fn use_store(options: Options) {
    let client = Client::connect(options).await.unwrap();
    let store = RedisStore::new(client, &Settings::default()).unwrap();
    let gate = Gate::with_store(Policy::from_toml(POLICY).unwrap(), store).unwrap();
    for round in 0..3 {
        for limit in ["strict", "leased", "window"] {
            let _ = gate.check_limit(limit, &["alice"], 1).await.unwrap();
            let _ = gate.peek_limit(limit, &["alice"], 1).await.unwrap();
            let check = LimitCheck { limit, values: &["alice"], cost: 1 };
            let receipt = gate.decide(&Limits(&[check])).await.unwrap().receipt();
            if let Some(receipt) = receipt {
                gate.deposit(&receipt, round, Duration::from_secs(9)).await.unwrap();
                gate.settle_deposit(round, 0).await.unwrap();
            }
            gate.settle_limit(limit, &["alice"], 1, 2).await.unwrap();
            let quota = "20/h".parse().unwrap();
            gate.set_override(limit, &["alice"], quota, Terms::permanent()).await.unwrap();
            gate.remove_override(limit, &["alice"]).await.unwrap();
            gate.reset_limit(limit, &["alice"]).await.unwrap();
        }
        sleep(Duration::from_millis(1200)).await;
    }
    assert_eq!(gate.store().stats().nodes, 1);
    assert!(gate.store().backend().health().outage.is_none());
    gate.store().shutdown().await;
}

/// Whatever a server has refused, but for the name in its list of clients, which nobody needs.
fn refused(connection: &mut redis::Connection) -> Vec<String> {
    let log: Vec<Vec<Value>> = redis::cmd("ACL").arg("LOG").query(connection).unwrap();
    let texts = log.iter().map(|entry| {
        entry.iter().filter_map(|value| redis::from_redis_value(value.clone()).ok()).collect()
    });
    let texts: Vec<Vec<String>> = texts.collect();
    let is_name = |entry: &[String]| entry.iter().any(|text| text.starts_with("client"));
    texts
        .into_iter()
        .filter(|entry| !is_name(&entry[..8.min(entry.len())]))
        .map(|entry| entry.join(" "))
        .collect()
}

#[tokio::test]
async fn a_user_needs_no_more_than_is_documented() {
    let servers = [
        Server::redis(),
        Server::valkey(),
        #[cfg(target_arch = "x86_64")]
        Server::redis_6_2(),
    ];
    let users = servers.iter().flat_map(|server| {
        assert_eq!(server.command(&documented()), "OK");
        [server.url(), format!("{}/3", server.url())].map(|url| async move {
            use_all(&Client::connect(login(options(&url))).await.unwrap()).await;
            use_store(login(options(&url))).await;
        })
    });
    join_all(users).await;
    for server in &servers {
        assert_eq!(refused(&mut server.admin()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn all_that_is_documented_is_needed_and_missed_at_the_start() {
    let server = Server::redis();
    server.command(&documented());
    let documented = documented();
    for allowed in documented.split(' ').filter(|word| word.starts_with('+')) {
        server.command(&format!("ACL SETUSER spillgate {}", allowed.replacen('+', "-", 1)));
        let url = format!("{}/3", server.url());
        assert_refused(login(options(&url)), Fault::Refused, "refuses us").await;
        server.command(&format!("ACL SETUSER spillgate {allowed}"));
        Client::connect(login(options(&url))).await.unwrap();
    }
    let other = login(options(&server.url())).prefix("other:");
    assert_refused(other, Fault::Refused, "refuses us").await;
}

#[tokio::test]
async fn in_a_cluster_a_user_needs_what_is_documented_for_it() {
    let cluster = Cluster::start(false);
    let more = documented_after("With a Cluster also");
    for node in &cluster.masters {
        assert_eq!(node.command(&format!("{} {more}", documented())), "OK");
    }
    use_all(&Client::connect(login(options(&cluster.url()))).await.unwrap()).await;
    use_store(login(options(&cluster.url()))).await;
    for node in &cluster.masters {
        // Only while slots move.
        let mut user = node.admin();
        redis::cmd("AUTH").arg("spillgate").arg("hunter2").exec(&mut user).unwrap();
        redis::cmd("ASKING").exec(&mut user).unwrap();
        assert_eq!(refused(&mut node.admin()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn at_sentinels_a_user_needs_what_is_documented_for_them() {
    let sentinels = Sentinels::start();
    for server in [&sentinels.master, &sentinels.replica] {
        assert_eq!(server.command(&documented()), "OK");
    }
    let allowed = documented_after("At Sentinels a user needs");
    let make = format!("ACL SETUSER watcher on >hunter3 {allowed}");
    let mut connections = Vec::new();
    for host in sentinels.url().trim_start_matches("redis+sentinel://").split(['/', ',']).take(3) {
        let client = redis::Client::open(format!("redis://{host}")).unwrap();
        let mut connection = client.get_connection().unwrap();
        let words: Vec<_> = make.split(' ').collect();
        redis::cmd(words[0]).arg(&words[1..]).exec(&mut connection).unwrap();
        connections.push(connection);
    }
    let login = login(options(&sentinels.url()));
    use_store(login.sentinel_user("watcher").sentinel_password("hunter3")).await;
    for connection in connections.iter_mut().chain([&mut sentinels.master.admin()]) {
        assert_eq!(refused(connection), Vec::<String>::new());
    }
}
