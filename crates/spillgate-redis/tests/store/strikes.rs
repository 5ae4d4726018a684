//! Offences count on all nodes together.

use std::sync::Arc;
use std::time::Duration;

use spillgate_policy::Key;
use spillgate_policy::store::{BanRule, LimitSpec, Store};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::fake::Fake;
use crate::common::Server;

fn node(redis: &Fake) -> RedisStore<Fake> {
    let settings = Settings::default().nodes(2.try_into().unwrap()).clock(redis.clock());
    RedisStore::new(redis.clone(), &settings).unwrap()
}

fn specs() -> [LimitSpec; 1] {
    [LimitSpec::new("login", "5/min".parse().unwrap())]
}

#[tokio::test(start_paused = true)]
async fn offences_on_all_nodes_lead_to_a_ban_that_grows() {
    let redis = Fake::new();
    let (one, other) = (node(&redis), node(&redis));
    let limits = [one.open(&specs()).unwrap(), other.open(&specs()).unwrap()];
    let (rule, ann) = (BanRule::new(3), Key::from_bytes(b"ann"));
    let strike = async |place: usize| {
        let store = [&one, &other][place];
        store.strike(&limits[place], 0, &ann, &rule).await.unwrap()
    };
    assert_eq!((strike(0).await, strike(1).await), (None, None));
    let ban = strike(0).await.unwrap();
    assert_eq!((ban.count, ban.duration), (1, rule.duration));
    assert_eq!(strike(1).await, None, "a ban is not extended");
    sleep(rule.duration).await;
    assert_eq!((strike(1).await, strike(0).await), (None, None));
    let ban = strike(1).await.unwrap();
    assert_eq!((ban.count, ban.duration), (2, 2 * rule.duration));
    other.forgive(&limits[1], 0, &ann).await.unwrap();
    assert_eq!((strike(0).await, strike(0).await), (None, None), "it is as if never seen");
    assert_eq!(strike(1).await.unwrap().count, 1);
    one.forgive(&limits[0], 0, &Key::from_bytes(b"nobody")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn offences_are_forgotten_after_their_window() {
    let redis = Fake::new();
    let store = node(&redis);
    let limits = store.open(&specs()).unwrap();
    let (rule, ann) = (BanRule::new(2), Key::from_bytes(b"ann"));
    for _ in 0..3 {
        assert_eq!(store.strike(&limits, 0, &ann, &rule).await.unwrap(), None);
        sleep(rule.window).await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_redis_is_away_nobody_is_banned() {
    let redis = Fake::new();
    let store = node(&redis);
    let limits = store.open(&specs()).unwrap();
    redis.set_down(true);
    let (rule, ann) = (BanRule::new(1), Key::from_bytes(b"ann"));
    assert!(store.strike(&limits, 0, &ann, &rule).await.unwrap_err().is_store());
    assert!(store.forgive(&limits, 0, &ann).await.unwrap_err().is_store());
}

/// Every offence counts once, whoever else counts at the same time.
#[tokio::test]
async fn of_many_who_strike_at_once_exactly_one_starts_the_ban() {
    let server = Server::redis();
    let options = Options::new(&server.url()).unwrap();
    let client = Client::connect(options.command_time_out(Duration::from_secs(5))).await.unwrap();
    let store = Arc::new(RedisStore::new(client, &Settings::default()).unwrap());
    let limits = Arc::new(store.open(&specs()).unwrap());
    for round in 0..10_u8 {
        let mut striking = JoinSet::new();
        for _ in 0..4 {
            let (store, limits) = (Arc::clone(&store), Arc::clone(&limits));
            striking.spawn(async move {
                let (rule, key) = (BanRule::new(4), Key::from_bytes(&[round]));
                store.strike(&limits, 0, &key, &rule).await.unwrap()
            });
        }
        let bans: Vec<_> = striking.join_all().await.into_iter().flatten().collect();
        assert_eq!(bans.len(), 1, "{bans:?}");
    }
    let ttl = redis::cmd("KEYS").arg("spillgate:strikes:*").query(&mut server.admin());
    let keys: Vec<Vec<u8>> = ttl.unwrap();
    assert_eq!(keys.len(), 10);
    for key in keys {
        let ttl: i64 = redis::cmd("PTTL").arg(key).query(&mut server.admin()).unwrap();
        assert!(ttl > 3_600_000, "bans are remembered after they end: {ttl}");
    }
}
