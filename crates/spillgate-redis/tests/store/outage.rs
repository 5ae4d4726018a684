//! What clients see while Redis is away.

use std::time::Duration;

use spillgate_policy::{LimitCheck, Limits, Terms};
use spillgate_redis::Settings;
use tokio::time::{Instant, sleep};

use super::fake::{Fake, TIME_OUT, check_all, left, passes};

/// How long a share counts as well once Redis is back.
const RETURN: Duration = Duration::from_secs(1);

fn policy(outage: &str) -> String {
    format!(
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/h'\noutage = '{outage}'"
    )
}

#[tokio::test(start_paused = true)]
async fn a_closed_limit_tells_what_is_down() {
    let redis = Fake::new();
    let node = redis.node(&policy("closed"));
    redis.set_down(true);
    let error = check_all(&node, &["l"], "alice").await.unwrap_err();
    assert!(error.is_store());
    let text = error.to_string();
    assert!(text.contains("limit \"l\"") && text.contains("redis://test"), "{text}");
    redis.set_down(false);
    assert_eq!(passes(&node, "l", "alice", 12).await, 10);
    assert_eq!(node.store().stats().outage_closed, 1);
}

#[tokio::test(start_paused = true)]
async fn an_open_limit_lets_everyone_pass_undecided() {
    let redis = Fake::new();
    let node = redis.node(&policy("open"));
    redis.set_down(true);
    for _ in 0..20 {
        let outcome = check_all(&node, &["l"], "alice").await.unwrap();
        assert!(outcome.is_allowed());
        assert_eq!(outcome.limits().count(), 0);
        assert!(outcome.nearest().is_none());
    }
    assert_eq!(node.store().stats().outage_open, 20);
}

#[tokio::test(start_paused = true)]
async fn a_local_limit_goes_by_this_nodes_share_and_keeps_it_between_outages() {
    let redis = Fake::new();
    let node = redis.node(&policy("local"));
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 4).await, 4);
    redis.set_down(false);
    sleep(RETURN).await;
    assert_eq!(passes(&node, "l", "alice", 2).await, 2);
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 12).await, 1);
    assert_eq!(left(&node, "l", "alice").await, 0);
    redis.set_down(false);
    sleep(RETURN).await;
    assert_eq!(passes(&node, "l", "alice", 12).await, 3, "all together ten");
    assert_eq!(node.store().stats().outage_local, 16);
}

#[tokio::test(start_paused = true)]
async fn a_share_follows_the_number_of_nodes_that_are_there() {
    let redis = Fake::new();
    let counting = Settings::default();
    let node = redis.node_with(&policy("local"), &counting);
    let others: Vec<_> = (0..4).map(|_| redis.node_with(&policy("local"), &counting)).collect();
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(node.store().stats().nodes, 5);
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 12).await, 2);
    redis.set_down(false);
    drop(others);
    sleep(Duration::from_secs(8)).await;
    assert_eq!(node.store().stats().nodes, 1);
    redis.set_down(true);
    // Of ten, two are spent already.
    assert_eq!(passes(&node, "l", "alice", 12).await, 8);
}

#[tokio::test(start_paused = true)]
async fn redis_that_has_forgotten_the_nodes_gives_none_of_them_more() {
    let redis = Fake::new();
    let counting = Settings::default();
    let nodes: Vec<_> = (0..5).map(|_| redis.node_with(&policy("local"), &counting)).collect();
    sleep(Duration::from_millis(1500)).await;
    redis.model().flush();
    sleep(Duration::from_secs(1)).await;
    redis.set_down(true);
    for node in &nodes {
        assert_eq!(passes(node, "l", "alice", 12).await, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_override_given_at_run_time_counts_in_an_outage_by_its_share() {
    let redis = Fake::new();
    let (node, other) = (redis.node(&policy("local")), redis.node(&policy("local")));
    node.set_override("l", &["alice"], "100/h".parse().unwrap(), Terms::permanent()).await.unwrap();
    assert_eq!(passes(&other, "l", "alice", 1).await, 1);
    sleep(Duration::from_secs(60)).await;
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 99).await, 50);
    assert_eq!(passes(&other, "l", "alice", 99).await, 50);
    redis.set_down(false);
    sleep(Duration::from_secs(1)).await;
    node.remove_override("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&other, "l", "alice", 1).await, 0);
    redis.set_down(true);
    assert_eq!(passes(&other, "l", "alice", 99).await, 0);
}

const MIXED: &str = "
    [[limit]]
    name = 'local'
    by-name = true
    per = 'user'
    quota = '4/h'

    [[limit]]
    name = 'open'
    by-name = true
    per = 'user'
    quota = '5/h'
    outage = 'open'

    [[limit]]
    name = 'closed'
    by-name = true
    per = 'user'
    quota = '6/h'
    outage = 'closed'
";

#[tokio::test(start_paused = true)]
async fn of_several_limits_a_closed_one_wins_and_nothing_is_spent() {
    let redis = Fake::new();
    let node = redis.node(MIXED);
    redis.set_down(true);
    assert!(check_all(&node, &["local", "open", "closed"], "alice").await.is_err());
    assert_eq!(left(&node, "local", "alice").await, 2);
    let mut passed = 0;
    for _ in 0..6 {
        passed +=
            usize::from(check_all(&node, &["local", "open"], "alice").await.unwrap().is_allowed());
    }
    assert_eq!(passed, 2);
}

#[tokio::test(start_paused = true)]
async fn if_one_slot_is_away_what_was_spent_in_another_is_taken_back() {
    let redis = Fake::with_slots(200);
    let node = redis.node(MIXED);
    let before = left(&node, "open", "alice").await;
    // Each slot in turn: one of them holds the limit that is closed.
    let mut failed = 0;
    for slot in 0..200 {
        redis.set_slot_down(Some(slot));
        match check_all(&node, &["open", "closed"], "alice").await {
            Err(_) => failed += 1,
            Ok(outcome) if outcome.limits().count() == 2 => {
                // Neither was away.
                redis.set_slot_down(None);
                node.reset_limit("open", &["alice"]).await.unwrap();
                node.reset_limit("closed", &["alice"]).await.unwrap();
            }
            Ok(outcome) => assert!(outcome.is_allowed()),
        }
    }
    redis.set_slot_down(None);
    assert_eq!(failed, 1);
    assert_eq!(left(&node, "open", "alice").await, before);
}

#[tokio::test(start_paused = true)]
async fn a_limit_in_shadow_that_is_away_stays_undecided() {
    let redis = Fake::new();
    let node = redis.node(
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/h'\nmode = 'shadow'\noutage = 'closed'",
    );
    redis.set_down(true);
    let outcome = check_all(&node, &["l"], "alice").await.unwrap();
    assert!(outcome.is_allowed());
    assert!(outcome.shadow_error().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_waited_for_once() {
    let redis = Fake::with_slots(200);
    let policy = MIXED.replace("quota = '4/h'", "quota = '1000/h'\nsharing = 'leased'");
    let node = redis.node(&policy);
    redis.hang();
    for limits in [&["local", "open"][..], &["open", "closed"], &["local", "open", "closed"]] {
        let began = Instant::now();
        let checked = check_all(&node, limits, "alice").await;
        assert_eq!(checked.is_err(), limits.contains(&"closed"));
        assert_eq!(began.elapsed(), TIME_OUT, "{limits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_one_slot_is_away_limits_in_others_are_still_asked_for() {
    let redis = Fake::with_slots(200);
    let node = redis.node(&MIXED.replace("4/h", "4000/h").replace("5/h", "5000/h"));
    for slot in 0..200 {
        redis.set_slot_down(Some(slot));
        let before = node.store().stats();
        assert!(check_all(&node, &["local", "open"], "alice").await.unwrap().is_allowed());
        let asked = node.store().stats().by_redis - before.by_redis;
        assert!(asked >= 1, "neither limit was asked for while slot {slot} was away");
    }
    let stats = node.store().stats();
    assert_eq!((stats.outage_local, stats.outage_open), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_was_decided_here_is_taken_back_here_and_nowhere_else() {
    let redis = Fake::new();
    // By itself a node has the whole quota as its share, and counts as Redis does.
    let alone = Settings::default().nodes(1.try_into().unwrap());
    let policy = format!("{}\nalgorithm = 'fixed-window'", policy("local"));
    let node = redis.node_with(&policy, &alone);
    redis.set_down(true);
    let here = check_all(&node, &["l"], "alice").await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 9);
    redis.set_down(false);
    assert_eq!(passes(&node, "l", "bob", 1).await, 1);
    node.cancel(here);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(left(&node, "l", "alice").await, 10);
    assert_eq!(left(&node, "l", "bob").await, 9);
    redis.set_down(true);
    assert_eq!(left(&node, "l", "alice").await, 10);
}

/// A policy for one node alone, whose share is the whole.
fn alone(rest: &str) -> String {
    format!("[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\n{rest}")
}

fn one() -> Settings {
    Settings::default().nodes(1.try_into().unwrap())
}

#[tokio::test(start_paused = true)]
async fn whoever_the_node_has_seen_goes_on_from_what_it_had_spent() {
    for algorithm in [
        "quota = '10/h'",
        "quota = '10/h'\nalgorithm = 'leaky-bucket'",
        "quota = '10/h'\nalgorithm = 'fixed-window'",
        "quota = '10/h'\nalgorithm = 'sliding-window'",
        "quota = '10/h'\nalgorithm = 'interval-bucket'",
        "quota = 'burst 10'",
    ] {
        let redis = Fake::new();
        let node = redis.node_with(&alone(algorithm), &one());
        assert_eq!(passes(&node, "l", "alice", 7).await, 7, "{algorithm}");
        redis.set_down(true);
        assert_eq!(left(&node, "l", "alice").await, 3, "{algorithm}");
        assert_eq!(passes(&node, "l", "alice", 2).await, 2, "{algorithm}");
        redis.set_down(false);
        assert_eq!(left(&node, "l", "alice").await, 1, "{algorithm}");
        assert_eq!(passes(&node, "l", "alice", 9).await, 1, "{algorithm}");
        redis.set_down(true);
        assert_eq!(passes(&node, "l", "alice", 9).await, 0, "{algorithm}");
        assert_eq!(passes(&node, "l", "bob", 12).await, 10, "{algorithm}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_admitted_in_an_outage_is_debited_for_all_nodes_when_it_is_over() {
    let redis = Fake::new();
    let (node, other) = (redis.node(&policy("local")), redis.node(&policy("local")));
    redis.set_down(true);
    for user in ["alice", "bob", "carol"] {
        assert_eq!(passes(&node, "l", user, 12).await, 5);
    }
    assert_eq!(passes(&other, "l", "alice", 3).await, 3);
    assert_eq!((node.store().stats().unreported, other.store().stats().unreported), (3, 1));
    redis.set_down(false);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((node.store().stats().unreported, other.store().stats().unreported), (0, 0));
    assert_eq!(left(&other, "l", "alice").await, 2);
    assert_eq!(left(&other, "l", "bob").await, 5);
    assert_eq!(passes(&other, "l", "carol", 12).await, 5);
}

#[tokio::test(start_paused = true)]
async fn what_has_been_refilled_since_is_not_debited() {
    let redis = Fake::new();
    let node = redis.node_with(&alone("quota = '10/s'"), &one());
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 12).await, 10);
    sleep(Duration::from_millis(600)).await;
    redis.set_down(false);
    assert_eq!(left(&node, "l", "alice").await, 6);
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 12).await, 6);
    sleep(Duration::from_secs(2)).await;
    redis.set_down(false);
    assert_eq!(left(&node, "l", "alice").await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_reset_forgives_what_was_admitted_in_an_outage_too() {
    let redis = Fake::new();
    let node = redis.node_with(&alone("quota = '10/h'"), &one());
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 12).await, 10);
    redis.set_down(false);
    node.reset_limit("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 4).await, 4);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(left(&node, "l", "alice").await, 6);
    redis.set_down(true);
    assert_eq!(left(&node, "l", "alice").await, 6);
}

#[tokio::test(start_paused = true)]
async fn what_is_reserved_in_an_outage_and_settled_in_another_state_counts_once() {
    let redis = Fake::new();
    let node = redis.node_with(&alone("quota = '100/h'"), &one());
    let value = ["alice"];
    let spend = LimitCheck { limit: "l", values: &value, cost: 10 };
    // Reserved here; settled there.
    redis.set_down(true);
    assert!(node.decide(&Limits(&[spend])).await.unwrap().is_allowed());
    redis.set_down(false);
    node.settle_limit("l", &value, 10, 4).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 96);
    // Reserved there; settled here, for more.
    assert!(node.decide(&Limits(&[spend])).await.unwrap().is_allowed());
    redis.set_down(true);
    node.settle_limit("l", &value, 10, 16).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 80);
    redis.set_down(false);
    assert_eq!(left(&node, "l", "alice").await, 80);
    // Both here.
    redis.set_down(true);
    assert!(node.decide(&Limits(&[spend])).await.unwrap().is_allowed());
    node.settle_limit("l", &value, 10, 1).await.unwrap();
    redis.set_down(false);
    assert_eq!(left(&node, "l", "alice").await, 79);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_debits_what_it_admitted() {
    let redis = Fake::new();
    let node = redis.node(&policy("local"));
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 12).await, 5);
    redis.set_down(false);
    node.store().shutdown().await;
    let other = redis.node(&policy("local"));
    assert_eq!(left(&other, "l", "alice").await, 5);
}

#[tokio::test(start_paused = true)]
async fn what_was_refilled_before_it_is_settled_pays_for_nothing() {
    let redis = Fake::new();
    let node = redis.node_with(&alone("quota = '100/min'"), &one());
    let reserve = LimitCheck { limit: "l", values: &["alice"], cost: 100 };
    let receipt = node.decide(&Limits(&[reserve])).await.unwrap().receipt().unwrap();
    sleep(Duration::from_secs(61)).await;
    redis.set_down(true);
    assert_eq!(passes(&node, "l", "alice", 120).await, 100);
    node.settle_actual(receipt, 0).await.unwrap();
    redis.set_down(false);
    assert_eq!(passes(&node, "l", "alice", 120).await, 0);
}
