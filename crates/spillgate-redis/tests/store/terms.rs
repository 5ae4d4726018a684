//! Quotas change while callers spend.

use std::time::Duration;

use spillgate::AlgorithmKind;
use spillgate_policy::{LimitCheck, Limits, Policy};
use spillgate_redis::Settings;
use spillgate_testing::CheckLimit;

use super::fake::{Fake, Node, check_all, left, passes};

fn policy(quota: &str) -> String {
    format!("[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '{quota}'")
}

#[tokio::test(start_paused = true)]
async fn what_is_spent_stays_spent_under_a_new_quota() {
    let redis = Fake::new();
    let node = redis.node(&policy("10/h"));
    assert_eq!(passes(&node, "l", "alice", 7).await, 7);
    let _ = node.replace(Policy::from_toml(&policy("20/h")).unwrap()).unwrap();
    assert_eq!(left(&node, "l", "alice").await, 13);
    assert_eq!(passes(&node, "l", "alice", 20).await, 13);
    let _ = node.replace(Policy::from_toml(&policy("5/h")).unwrap()).unwrap();
    assert_eq!(left(&node, "l", "alice").await, 0);
    assert_eq!(passes(&node, "l", "alice", 5).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_has_moved_costs_an_exchange_only_where_calls_pass_and_not_for_long() {
    let redis = Fake::new();
    let node = forgetful(&redis, &policy("10/h"));
    assert_eq!(passes(&node, "l", "alice", 2).await, 2);
    let _ = node.replace(Policy::from_toml(&policy("20/h")).unwrap()).unwrap();
    assert_eq!(passes(&node, "l", "alice", 18).await, 18);
    assert_eq!(redis.exchanges(), 18);
    assert_eq!(passes(&node, "l", "alice", 9).await, 0);
    assert_eq!(redis.exchanges(), 18);
    // What was spent under both has run off in an hour and six minutes.
    tokio::time::sleep(Duration::from_secs(67 * 60)).await;
    assert_eq!(passes(&node, "l", "alice", 99).await, 20);
    assert_eq!(redis.exchanges(), 19);
    assert_eq!(node.store().stats().carried_over, 1);
}

/// A node that remembers no denials, so that each decision is Redis's.
fn forgetful(redis: &Fake, policy: &str) -> Node {
    let settings = Settings::default().nodes(2.try_into().unwrap()).remembered(0);
    redis.node_with(policy, &settings)
}

/// What a denied call is told.
async fn told(node: &Node) -> Option<Duration> {
    let decision = node.check_limit("l", &["alice"], 1).await.unwrap();
    assert!(decision.is_denied());
    decision.retry_after()
}

#[tokio::test(start_paused = true)]
async fn a_raised_quota_reaches_who_is_exhausted_and_what_they_are_told_is_true() {
    for sharing in ["strict", "leased"] {
        for wait in [0_u64, 8] {
            let shared = |quota: &str| format!("{}\nsharing = '{sharing}'", policy(quota));
            let redis = Fake::new();
            let node = forgetful(&redis, &shared("1/h burst 100"));
            assert_eq!(passes(&node, "l", "alice", 200).await, 100);
            let _ = node.replace(Policy::from_toml(&shared("60/min burst 100")).unwrap()).unwrap();
            let raised = forgetful(&redis, &shared("60/min burst 100"));
            tokio::time::sleep(Duration::from_secs(wait)).await;
            // Less what has been refilled by the quota before.
            let most = Duration::from_nanos(1_000_000_000 - wait * 1_000_000_000 / 3600);
            let told_first = told(&node).await.unwrap();
            assert!(told_first <= most && told_first + Duration::from_micros(1) > most);
            tokio::time::advance(Duration::from_millis(400)).await;
            // Also by another store.
            for node in [&raised, &node] {
                assert_eq!(told(node).await, Some(told_first - Duration::from_millis(400)));
            }
            tokio::time::advance(told_first - Duration::from_nanos(400_000_001)).await;
            assert_eq!(told(&node).await, Some(Duration::from_nanos(1)));
            tokio::time::advance(Duration::from_nanos(1)).await;
            assert_eq!(passes(&node, "l", "alice", 3).await, 1);
            tokio::time::advance(Duration::from_secs(8)).await;
            assert_eq!(passes(&node, "l", "alice", 20).await, 8);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_question_is_told_after_a_change_is_true() {
    let redis = Fake::new();
    let node = forgetful(&redis, &policy("1/h burst 3"));
    assert_eq!(passes(&node, "l", "alice", 9).await, 3);
    let _ = node.replace(Policy::from_toml(&policy("60/min burst 3")).unwrap()).unwrap();
    let peek = async || node.peek_limit("l", &["alice"], 1).await.unwrap().retry_after();
    assert_eq!(peek().await, Some(Duration::from_secs(1)));
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(peek().await, Some(Duration::from_millis(100)));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(passes(&node, "l", "alice", 3).await, 1);
}

#[tokio::test(start_paused = true)]
async fn nodes_with_different_quotas_do_not_forgive_by_turns() {
    let redis = Fake::new();
    let (small, large) = (redis.node(&policy("10/h")), redis.node(&policy("100/h")));
    let mut passed = 0;
    for _ in 0..200 {
        passed += passes(&small, "l", "alice", 1).await;
        passed += passes(&large, "l", "alice", 1).await;
    }
    assert_eq!(passed, 100);
}

#[tokio::test(start_paused = true)]
async fn a_limit_in_shadow_forgives_nobody_where_it_is_enforced() {
    let redis = Fake::new();
    let (enforced, shadow) = (policy("10/h"), format!("{}\nmode = 'shadow'", policy("5/h")));
    let shadow = redis.node(&shadow);
    assert_eq!(passes(&redis.node(&enforced), "l", "alice", 20).await, 10);
    for _ in 0..3 {
        assert!(check_all(&shadow, &["l"], "alice").await.unwrap().is_allowed());
        // One that remembers no denial.
        assert_eq!(passes(&redis.node(&enforced), "l", "alice", 1).await, 0);
    }
    assert_eq!(left(&shadow, "l", "alice").await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_under_another_quota_is_not_cut() {
    let redis = Fake::new();
    let (small, large) = (redis.node(&policy("10/h")), redis.node(&policy("100/h")));
    assert_eq!(passes(&large, "l", "alice", 60).await, 60);
    small.settle_limit("l", &["alice"], 0, 5).await.unwrap();
    assert_eq!(left(&small, "l", "alice").await, 0);
    assert_eq!(left(&large, "l", "alice").await, 35);
    small.settle_limit("l", &["alice"], 5, 0).await.unwrap();
    assert_eq!(left(&large, "l", "alice").await, 40);
}

/// A limit with a tier, in which these callers are.
fn tiers(callers: &str, algorithm: &str) -> String {
    format!(
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/h'\nalgorithm = '{algorithm}'\n\
         [tier.gold]\ncallers = [{callers}]\nl = '50/h'"
    )
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_changes_its_tier_takes_along_what_it_has_spent() {
    for kind in AlgorithmKind::ALL {
        let redis = Fake::new();
        let node = redis.node(&tiers("'user:bob'", kind.name()));
        assert_eq!(passes(&node, "l", "alice", 12).await, 10, "{kind}");
        let gold = Policy::from_toml(&tiers("'user:alice'", kind.name())).unwrap();
        let _ = node.replace(gold).unwrap();
        assert_eq!(passes(&node, "l", "alice", 50).await, 40, "{kind}");
        let _ = node.replace(Policy::from_toml(&tiers("'user:bob'", kind.name())).unwrap());
        assert_eq!(passes(&node, "l", "alice", 50).await, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_starts_empty_begins_when_it_is_first_asked_for_by_any_node() {
    let redis = Fake::new();
    let policy =
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/s'\nstart = 'empty'";
    let node = redis.node(policy);
    assert_eq!(passes(&node, "l", "alice", 3).await, 0);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let later = redis.node(policy);
    assert_eq!(passes(&later, "l", "bob", 9).await, 5);
}

#[tokio::test(start_paused = true)]
async fn who_is_denied_by_a_quota_that_has_moved_is_denied_also_if_that_cannot_be_written() {
    let redis = Fake::new();
    let node = forgetful(&redis, &policy("100/h"));
    assert_eq!(passes(&node, "l", "alice", 100).await, 100);
    let _ = node.replace(Policy::from_toml(&policy("10/h")).unwrap()).unwrap();
    // Of the question and the exchange, the second is not answered.
    redis.lose_answers(1..2);
    assert!(node.check_limit("l", &["alice"], 1).await.unwrap().is_denied());
    assert_eq!((redis.exchanges(), node.store().stats().unreported), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_raised_quota_reaches_who_is_exhausted_in_shadow_mode() {
    let enforced = policy("100/h").replace("'l'", "'enforced'");
    let shadow = |quota: &str| format!("{enforced}\n{}\nmode = 'shadow'", policy(quota));
    // Also where another limit denies.
    for (limits, is_allowed) in [(&["l"][..], true), (&["enforced", "l"], false)] {
        let redis = Fake::new();
        let node = forgetful(&redis, &shadow("1/h burst 3"));
        for _ in 0..4 {
            assert!(check_all(&node, &["l"], "alice").await.unwrap().is_allowed());
        }
        assert_eq!(passes(&node, "enforced", "alice", 100).await, 100);
        let _ = node.replace(Policy::from_toml(&shadow("60/min burst 3")).unwrap()).unwrap();
        assert_eq!(check_all(&node, limits, "alice").await.unwrap().is_allowed(), is_allowed);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(left(&node, "l", "alice").await, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_raised_quota_reaches_who_asks_for_more_than_is_left_in_two_parts() {
    let redis = Fake::new();
    let node = forgetful(&redis, &policy("1/h burst 3"));
    assert_eq!(passes(&node, "l", "alice", 2).await, 2);
    let _ = node.replace(Policy::from_toml(&policy("60/min burst 3")).unwrap()).unwrap();
    assert!(!check_all(&node, &["l", "l"], "alice").await.unwrap().is_allowed());
    assert_eq!((redis.exchanges(), redis.runs()), (1, 3));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(check_all(&node, &["l", "l"], "alice").await.unwrap().is_allowed());
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_denied_in_shadow_mode_does_not_hold_up_the_next() {
    let redis = Fake::new();
    let shadow = |quota: &str| format!("{}\nmode = 'shadow'", policy(quota));
    let node = forgetful(&redis, &shadow("10/h"));
    assert_eq!(passes(&node, "l", "alice", 8).await, 8);
    let _ = node.replace(Policy::from_toml(&shadow("12/h")).unwrap()).unwrap();
    assert_eq!(passes(&node, "l", "alice", 1).await, 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    let part = |cost| LimitCheck { limit: "l", values: &["alice"], cost };
    let _ = node.decide(&Limits(&[part(5), part(1)])).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 2);
}
