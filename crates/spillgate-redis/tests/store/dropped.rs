//! Requests whose clients have gone: each is dropped after any number of polls.

use std::time::Duration;

use spillgate_policy::{LimitCheck, Limits, Policy};
use spillgate_testing::CheckLimit;
use tokio::time::sleep;

use super::fake::{Fake, Node, check_all, left, passes, polled};

/// How long a call is under way, each way.
const WAY: Duration = Duration::from_millis(1);

/// More polls than any of these requests needs.
const POLLS: usize = 12;

const POLICY: &str = "
    [[limit]]
    name = 'a'
    by-name = true
    per = 'user'
    quota = '100/h'

    [[limit]]
    name = 'b'
    by-name = true
    per = 'user'
    quota = '100/h'
";

/// Redis that takes its time, and has these slots.
fn slow(slots: u8) -> Fake {
    let redis = Fake::with_slots(slots);
    redis.set_delay(WAY);
    redis.set_answer_delay(WAY);
    redis
}

/// Long enough for what goes on in the background.
async fn rest() {
    sleep(Duration::from_secs(1)).await;
}

/// How often a user has spent under two limits.
async fn spent(node: &Node, user: &str) -> [u64; 2] {
    [100 - left(node, "a", user).await, 100 - left(node, "b", user).await]
}

#[tokio::test(start_paused = true)]
async fn a_call_spends_in_all_slots_or_in_none() {
    let scattered = slow(1);
    scattered.set_scattered(true);
    for (which, redis) in [("several slots", slow(200)), ("one that moves", scattered)] {
        let node = redis.node(POLICY);
        let mut is_done = false;
        for polls in 0..POLLS {
            let user = &format!("user {polls}");
            is_done = polled(polls, check_all(&node, &["a", "b"], user)).await.is_some();
            rest().await;
            let [a, b] = spent(&node, user).await;
            assert_eq!(a, b, "{which}, after {polls} polls");
            assert!(!is_done || a == 1, "{which}, after {polls} polls");
        }
        assert!(is_done, "{which}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_spends_by_a_quota_that_has_moved_and_by_one_that_has_not_or_by_neither() {
    let redis = slow(1);
    let node = redis.node(POLICY);
    let users: Vec<_> = (0..2 * POLLS).map(|polls| format!("user {polls}")).collect();
    for user in &users {
        assert!(check_all(&node, &["a", "b"], user).await.unwrap().is_allowed());
    }
    let moved = POLICY.replacen("'100/h'", "'100/h burst 200'", 1);
    let _ = node.replace(Policy::from_toml(&moved).unwrap()).unwrap();
    let mut is_done = false;
    for (polls, user) in users.iter().enumerate() {
        is_done = polled(polls, check_all(&node, &["a", "b"], user)).await.is_some();
        rest().await;
        let [a, b] = [200 - left(&node, "a", user).await, 100 - left(&node, "b", user).await];
        assert_eq!(a, b, "after {polls} polls");
        assert!(!is_done || a == 2, "after {polls} polls");
    }
    assert!(is_done);
}

#[tokio::test(start_paused = true)]
async fn a_call_spends_by_two_quotas_that_have_moved_or_by_neither() {
    let redis = slow(1);
    let node = redis.node(POLICY);
    let users: Vec<_> = (0..2 * POLLS).map(|polls| format!("user {polls}")).collect();
    for user in &users {
        assert!(check_all(&node, &["a", "b"], user).await.unwrap().is_allowed());
    }
    let moved = POLICY.replace("'100/h'", "'100/h burst 200'");
    let _ = node.replace(Policy::from_toml(&moved).unwrap()).unwrap();
    let mut is_done = false;
    for (polls, user) in users.iter().enumerate() {
        is_done = polled(polls, check_all(&node, &["a", "b"], user)).await.is_some();
        rest().await;
        let [a, b] = [200 - left(&node, "a", user).await, 200 - left(&node, "b", user).await];
        assert_eq!(a, b, "after {polls} polls");
        assert!(!is_done || a == 2, "after {polls} polls");
    }
    assert!(is_done);
}

#[tokio::test(start_paused = true)]
async fn a_call_spends_out_of_a_lease_and_in_redis_or_in_neither() {
    let leased = POLICY.replacen("'100/h'", "'100/h'\n    sharing = 'leased'", 1);
    for polls in 0..POLLS {
        let redis = slow(200);
        let (node, other) = (redis.node(&leased), redis.node(POLICY));
        // The fourth call within a short time begins a lease.
        assert_eq!(passes(&node, "a", "alice", 8).await, 8);
        let is_done = polled(polls, check_all(&node, &["a", "b"], "alice")).await.is_some();
        assert!(node.store().stats().leases.callers > 0);
        rest().await;
        node.store().shutdown().await;
        let [a, b] = spent(&other, "alice").await;
        assert_eq!(a - 8, b, "after {polls} polls");
        assert!(!is_done || b == 1, "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_debt_of_an_outage_is_charged_once() {
    for polls in 0..POLLS {
        let redis = slow(1);
        let node = redis.node(POLICY);
        redis.set_down(true);
        assert_eq!(passes(&node, "a", "alice", 20).await, 20);
        redis.set_down(false);
        let is_done = polled(polls, node.check_limit("a", &["alice"], 1)).await.is_some();
        rest().await;
        let [spent, _] = spent(&node, "alice").await;
        // The call may be spent although nobody has heard of it.
        let most = if polls > 0 { 21 } else { 20 };
        assert!((20..=most).contains(&spent), "{spent} after {polls} polls");
        assert!(!is_done || spent == 21, "{spent} after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_is_begun_is_made_once() {
    for actual in [4, 16] {
        for polls in 1..POLLS {
            let redis = slow(1);
            let node = redis.node(POLICY);
            let _ = node.check_limit("a", &["alice"], 10).await.unwrap();
            polled(polls, node.settle_limit("a", &["alice"], 10, actual)).await;
            rest().await;
            assert_eq!(spent(&node, "alice").await[0], actual, "after {polls} polls");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_is_begun_is_made_when_redis_can_be_asked() {
    for actual in [4, 16] {
        let redis = slow(1);
        let node = redis.node(POLICY);
        let _ = node.check_limit("a", &["alice"], 10).await.unwrap();
        redis.set_down(true);
        polled(1, node.settle_limit("a", &["alice"], 10, actual)).await;
        rest().await;
        redis.set_down(false);
        rest().await;
        assert_eq!(spent(&node, "alice").await[0], actual);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deposit_that_is_taken_out_is_settled() {
    for polls in 1..POLLS {
        let redis = slow(1);
        let (node, other) = (redis.node(POLICY), redis.node(POLICY));
        let check = LimitCheck { limit: "a", values: &["alice"], cost: 10 };
        let receipt = node.decide(&Limits(&[check])).await.unwrap().receipt().unwrap();
        assert!(node.deposit(&receipt, 1, Duration::from_secs(60)).await.unwrap());
        polled(polls, other.settle_deposit(1, 4)).await;
        rest().await;
        assert_eq!(spent(&node, "alice").await[0], 4, "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_denies_nobody_the_token_that_it_did_not_spend() {
    let redis = Fake::new();
    let node = redis.node(&POLICY.replace("100/h", "10/s"));
    assert_eq!(passes(&node, "a", "alice", 11).await, 10);
    sleep(Duration::from_millis(100)).await;
    redis.set_delay(WAY);
    assert!(polled(1, node.check_limit("a", &["alice"], 1)).await.is_none());
    assert_eq!(passes(&node, "a", "alice", 1).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_was_not_asked_since_another_denied_denies_nobody() {
    let redis = Fake::with_slots(200);
    let node = redis.node(&POLICY.replace("100/h", "10/s"));
    let other = redis.node(&POLICY.replace("100/h", "10/s"));
    for limit in ["a", "b"] {
        assert_eq!(passes(&node, limit, "alice", 11).await, 10);
    }
    sleep(Duration::from_millis(100)).await;
    // Another takes the token of one of them: then the other must not be denied here.
    for [taken, free] in [["a", "b"], ["b", "a"]] {
        assert_eq!(passes(&other, taken, "alice", 1).await, 1);
        assert!(!check_all(&node, &["a", "b"], "alice").await.unwrap().is_allowed());
        assert_eq!(passes(&node, free, "alice", 1).await, 1, "{free}");
        sleep(Duration::from_millis(100)).await;
    }
}
