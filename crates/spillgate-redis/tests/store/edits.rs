//! What is edited on one node is known on all, by the clock of each.

use std::time::Duration;

use spillgate::{Clock, Timestamp};
use spillgate_policy::store::{Edit, Store};
use spillgate_redis::{RedisStore, Secret, Settings};
use tokio::time::sleep;

use super::fake::Fake;
use crate::common::log;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const SECRET: &str = "the secret of the cluster";

/// A clock that is ahead of another.
struct Ahead<C>(C, Duration);

impl<C: Clock> Clock for Ahead<C> {
    fn now(&self) -> Timestamp {
        self.0.now() + self.1
    }
}

fn node(redis: &Fake, secret: &str, ahead: Duration) -> RedisStore<Fake> {
    let settings = Settings::default().secret(Secret::new(secret).unwrap());
    let settings = settings.nodes(2.try_into().unwrap()).clock(Ahead(redis.clock(), ahead));
    RedisStore::new(redis.clone(), &settings).unwrap()
}

fn edit(key: &str, value: Option<&str>, until: Option<Timestamp>) -> Edit {
    Edit::new(key.to_owned(), value.map(str::to_owned), until)
}

#[tokio::test(start_paused = true)]
async fn what_one_node_edits_the_others_know_by_their_own_clock() {
    let redis = Fake::new();
    let (one, other) = (node(&redis, SECRET, Duration::ZERO), node(&redis, SECRET, HOUR));
    let nothing = other.edits_since(0).await.unwrap();
    assert_eq!((nothing.version, nothing.edits.len()), (0, 0));
    let block = edit("[\"list\",\"block\",\"203.0.113.50/32\"]", Some("{\"comment\":\"x\"}"), None);
    let ban = edit("[\"ban\",\"user:1\"]", Some("{}"), Some(one.now() + HOUR));
    one.publish(&[block.clone(), ban.clone()]).await.unwrap();
    let log = other.edits_since(0).await.unwrap();
    let there = edit(&ban.key, Some("{}"), Some(other.now() + HOUR));
    assert_eq!(log.edits, [block.clone(), there]);
    assert!(other.edits_since(log.version).await.unwrap().edits.is_empty());
    // What remains becomes less, also for a node that learns of it later.
    sleep(HOUR / 2).await;
    let later = one.edits_since(0).await.unwrap();
    assert_eq!(later.edits[1].until, Some(one.now() + HOUR / 2));
    assert_eq!(later.version, log.version);
}

#[tokio::test(start_paused = true)]
async fn the_last_edit_counts_and_that_it_was_undone_is_known_for_a_day() {
    let redis = Fake::new();
    let (one, other) = (node(&redis, SECRET, Duration::ZERO), node(&redis, SECRET, HOUR));
    one.publish(&[edit("a", Some("1"), None), edit("b", Some("1"), None)]).await.unwrap();
    let seen = other.edits_since(0).await.unwrap().version;
    one.publish(&[edit("a", Some("2"), None)]).await.unwrap();
    one.publish(&[edit("a", None, None)]).await.unwrap();
    assert_eq!(other.edits_since(seen).await.unwrap().edits, [edit("a", None, None)]);
    sleep(DAY - HOUR).await;
    let all = [edit("b", Some("1"), None), edit("a", None, None)];
    assert_eq!(other.edits_since(0).await.unwrap().edits, all);
    sleep(HOUR).await;
    assert_eq!(other.edits_since(0).await.unwrap().edits, all[..1]);
}

/// Otherwise a node that was away would keep what the edit had replaced.
#[tokio::test(start_paused = true)]
async fn an_edit_that_has_ended_is_undone_on_nodes_that_were_away() {
    let redis = Fake::new();
    let (one, other) = (node(&redis, SECRET, Duration::ZERO), node(&redis, SECRET, HOUR));
    one.publish(&[edit("a", Some("for ever"), None)]).await.unwrap();
    let seen = other.edits_since(0).await.unwrap().version;
    one.publish(&[edit("a", Some("soon"), Some(one.now() + HOUR))]).await.unwrap();
    sleep(HOUR).await;
    assert_eq!(other.edits_since(seen).await.unwrap().edits, [edit("a", None, None)]);
}

#[tokio::test(start_paused = true)]
async fn a_redis_that_has_lost_its_state_is_noticed_whatever_was_edited_since() {
    let redis = Fake::new();
    let (one, other) = (node(&redis, SECRET, Duration::ZERO), node(&redis, SECRET, HOUR));
    one.publish(&[edit("a", Some("1"), None)]).await.unwrap();
    let seen = other.edits_since(0).await.unwrap().version;
    redis.model().flush();
    assert!(other.edits_since(seen).await.unwrap().version < seen);
    sleep(Duration::from_secs(1)).await;
    let many: Vec<_> = (0..50).map(|i| edit(&format!("new {i}"), Some("1"), None)).collect();
    one.publish(&many).await.unwrap();
    let log = other.edits_since(seen).await.unwrap();
    assert!(log.version < seen, "{} is not below {seen}", log.version);
    assert_eq!(log.edits, many);
}

#[tokio::test(start_paused = true)]
async fn after_a_failover_that_lost_edits_new_ones_with_their_versions_are_read() {
    let redis = Fake::new();
    let (one, other) = (node(&redis, SECRET, Duration::ZERO), node(&redis, SECRET, HOUR));
    one.publish(&[edit("a", Some("1"), None)]).await.unwrap();
    let replicated = other.edits_since(0).await.unwrap().version;
    one.publish(&[edit("b", Some("lost"), None)]).await.unwrap();
    let seen = other.edits_since(replicated).await.unwrap().version;
    redis.model().fail_over_edits(replicated);
    let new = [edit("a", Some("1"), None), edit("c", Some("new"), None)];
    one.publish(&new[1..]).await.unwrap();
    let log = other.edits_since(seen).await.unwrap();
    assert_eq!((log.version, &log.edits[..]), (seen, &new[..]));
    // Once.
    assert!(other.edits_since(seen).await.unwrap().edits.is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_edits_come_in_pages_and_all_of_them_in_order() {
    let redis = Fake::new();
    let (one, other) = (node(&redis, SECRET, Duration::ZERO), node(&redis, SECRET, HOUR));
    let many: Vec<_> = (0..17_500).map(|i| edit(&format!("key {i}"), Some("1"), None)).collect();
    one.publish(&many).await.unwrap();
    let (mut fetched, mut version, mut calls) = (Vec::new(), 0, 0);
    loop {
        let log = other.edits_since(version).await.unwrap();
        if log.edits.is_empty() {
            break;
        }
        calls += 1;
        (version, fetched) = (log.version, [fetched, log.edits].concat());
    }
    assert_eq!((calls, fetched == many), (2, true));
}

#[tokio::test(start_paused = true)]
async fn nodes_with_another_secret_share_no_edits() {
    let redis = Fake::new();
    let (one, other) =
        (node(&redis, SECRET, Duration::ZERO), node(&redis, "the secret of others", HOUR));
    let warnings = || log().matches("encrypted under another cluster secret").count();
    let before = warnings();
    one.publish(&[edit("a", Some("1"), None)]).await.unwrap();
    other.publish(&[edit("a", Some("2"), None)]).await.unwrap();
    for _ in 0..3 {
        assert_eq!(one.edits_since(0).await.unwrap().edits, [edit("a", Some("1"), None)]);
        assert_eq!(other.edits_since(0).await.unwrap().edits, [edit("a", Some("2"), None)]);
    }
    assert_eq!(warnings() - before, 2, "each says so once");
}

#[tokio::test(start_paused = true)]
async fn while_redis_is_away_edits_are_refused() {
    let redis = Fake::new();
    let one = node(&redis, SECRET, Duration::ZERO);
    redis.set_down(true);
    assert!(one.publish(&[edit("a", Some("1"), None)]).await.unwrap_err().is_store());
    assert!(one.edits_since(0).await.unwrap_err().is_store());
}
