//! Quotas change while callers spend.

use spillgate_policy::Policy;

use super::fake::{Fake, check_all, left, passes};

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
async fn a_state_is_carried_over_once_and_not_for_each_call() {
    let redis = Fake::new();
    let node = redis.node(&policy("10/h"));
    assert_eq!(passes(&node, "l", "alice", 2).await, 2);
    let _ = node.replace(Policy::from_toml(&policy("20/h")).unwrap()).unwrap();
    assert_eq!(passes(&node, "l", "alice", 5).await, 5);
    assert_eq!(redis.exchanges(), 1);
    assert_eq!(node.store().stats().carried_over, 1);
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
    let redis = Fake::new();
    let node = redis.node(&tiers("'user:bob'", "fixed-window"));
    assert_eq!(passes(&node, "l", "alice", 12).await, 10);
    let gold = Policy::from_toml(&tiers("'user:alice'", "fixed-window")).unwrap();
    let _ = node.replace(gold).unwrap();
    assert_eq!(passes(&node, "l", "alice", 50).await, 40);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_owes_the_same_time_in_every_tier() {
    let redis = Fake::new();
    let node = redis.node(&tiers("'user:bob'", "token-bucket"));
    assert_eq!(passes(&node, "l", "alice", 12).await, 10);
    let gold = Policy::from_toml(&tiers("'user:alice'", "token-bucket")).unwrap();
    let _ = node.replace(gold).unwrap();
    assert_eq!(passes(&node, "l", "alice", 50).await, 0);
    // The new rate counts at once, and the burst as it refills.
    tokio::time::sleep(std::time::Duration::from_secs(30 * 60)).await;
    assert_eq!(passes(&node, "l", "alice", 50).await, 25);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_starts_empty_begins_when_it_is_first_asked_for_by_any_node() {
    let redis = Fake::new();
    let policy =
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/s'\nstart = 'empty'";
    let node = redis.node(policy);
    assert_eq!(passes(&node, "l", "alice", 3).await, 0);
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let later = redis.node(policy);
    assert_eq!(passes(&later, "l", "bob", 9).await, 5);
}
