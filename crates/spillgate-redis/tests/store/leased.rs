//! Leased limits, beside strict ones.

use spillgate_policy::{Outcome, Terms};
use spillgate_testing::CheckLimit;
use std::time::Duration;

use http::Request;
use spillgate_policy::RequestView as Asked;
use tokio::time::{Instant, sleep};

use super::fake::{Fake, Node, check_all, left, passes};

const POLICY: &str = "
    [[limit]]
    name = 'leased'
    by-name = true
    per = 'user'
    quota = '1000/s burst 2000'
    sharing = 'leased'

    [[limit]]
    name = 'strict'
    by-name = true
    per = 'user'
    quota = '20/h'
";

#[tokio::test(start_paused = true)]
async fn a_hot_caller_costs_few_commands() {
    let redis = Fake::new();
    redis.set_delay(Duration::from_millis(1));
    let node = redis.node(POLICY);
    for _ in 0..1000 {
        assert_eq!(passes(&node, "leased", "alice", 1).await, 1);
        sleep(Duration::from_millis(2)).await;
    }
    assert!(redis.runs() < 200, "{}", redis.runs());
    let stats = node.store().stats();
    assert!(stats.leases.allowed > 900, "{stats:?}");
    assert_eq!(stats.by_redis, 3, "until it is known to be hot");
}

#[tokio::test(start_paused = true)]
async fn a_lease_decides_at_once() {
    let redis = Fake::new();
    let node = redis.node(
        "[[limit]]\nname = 'l'\nper = 'global'\nquota = '1000/s burst 2000'\nsharing = 'leased'",
    );
    let parts = Request::builder().uri("/a").body(()).unwrap().into_parts().0;
    let request = Asked::from_parts(&parts, None);
    assert!(node.try_decide(&request, |it| it.map(Outcome::take)).is_none());
    let mut at_once = 0;
    for _ in 0..1000 {
        match node.try_decide(&request, |it| it.map(Outcome::take)) {
            Some(checked) => {
                assert!(checked.unwrap().is_allowed());
                at_once += 1;
            }
            None => assert!(node.decide(&request).await.unwrap().is_allowed()),
        }
    }
    assert!(at_once > 900, "{at_once}");
}

#[tokio::test(start_paused = true)]
async fn what_a_strict_limit_denies_is_not_spent_out_of_a_lease() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    let mut passed = 0;
    for _ in 0..100 {
        let outcome = check_all(&node, &["leased", "strict"], "alice").await.unwrap();
        passed += usize::from(outcome.is_allowed());
    }
    assert_eq!(passed, 20);
    node.store().shutdown().await;
    assert_eq!(left(&node, "leased", "alice").await, 1980);
    assert_eq!(node.store().stats().kept_spends, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_comes_back_before_the_quota_of_a_caller_changes() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    assert_eq!(passes(&node, "leased", "alice", 1).await, 1);
    assert_eq!(passes(&node, "leased", "alice", 49).await, 49);
    let quota = "1/s burst 4000".parse().unwrap();
    node.set_override("leased", &["alice"], quota, Terms::permanent()).await.unwrap();
    assert_eq!(left(&node, "leased", "alice").await, 3950);
}

/// How many calls two nodes let pass in a time, if there are always more.
async fn admitted(nodes: [&Node; 2], time: Duration) -> u64 {
    let end = Instant::now() + time;
    let mut admitted = 0;
    while Instant::now() < end {
        for node in nodes {
            admitted += passes(node, "leased", "alice", 20).await as u64;
        }
        sleep(Duration::from_millis(1)).await;
    }
    admitted
}

#[tokio::test(start_paused = true)]
async fn nodes_together_admit_what_the_quota_says_and_hardly_less() {
    let redis = Fake::new();
    redis.set_delay(Duration::from_micros(300));
    let (one, other) = (redis.node(POLICY), redis.node(POLICY));
    let began = Instant::now();
    let admitted = admitted([&one, &other], Duration::from_secs(10)).await;
    let most = 2000 + began.elapsed().as_millis() as u64;
    assert!(admitted <= most, "{admitted} of {most}");
    assert!(admitted >= most * 95 / 100, "{admitted} of {most}");
}

#[tokio::test(start_paused = true)]
async fn resets_and_overrides_count_under_leases_too() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    assert_eq!(passes(&node, "leased", "alice", 2500).await, 2000);
    node.reset_limit("leased", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "leased", "alice", 2500).await, 2000);
    let quota = "1000/s burst 3000".parse().unwrap();
    node.set_override("leased", &["alice"], quota, Terms::permanent()).await.unwrap();
    assert_eq!(passes(&node, "leased", "alice", 2500).await, 1000);
    node.remove_override("leased", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "leased", "alice", 10).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_lowered_and_restored_forgives_nothing_under_leases() {
    let redis = Fake::new();
    let slow = POLICY.replace("1000/s burst 2000", "1/h burst 2000");
    assert_ne!(slow, POLICY);
    let nodes = [redis.node(&slow), redis.node(&slow)];
    assert_eq!(passes(&nodes[0], "leased", "alice", 1200).await, 1200);
    // What it holds goes back.
    sleep(Duration::from_secs(1)).await;
    let quota = "500/h burst 500".parse().unwrap();
    nodes[0].set_override("leased", &["alice"], quota, Terms::permanent()).await.unwrap();
    for node in &nodes {
        assert_eq!(passes(node, "leased", "alice", 50).await, 0);
    }
    sleep(Duration::from_secs(72)).await;
    let passed: usize = passes(&nodes[0], "leased", "alice", 50).await;
    assert_eq!(passed, 10);
    nodes[0].remove_override("leased", &["alice"]).await.unwrap();
    assert_eq!(left(&nodes[1], "leased", "alice").await, 790);
    assert_eq!(passes(&nodes[1], "leased", "alice", 999).await, 790);
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_counts_under_leases_too() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    let _ = node.check_limit("leased", &["alice"], 100).await.unwrap();
    node.settle_limit("leased", &["alice"], 100, 300).await.unwrap();
    node.store().shutdown().await;
    assert_eq!(left(&node, "leased", "alice").await, 1700);
    node.settle_limit("leased", &["alice"], 300, 0).await.unwrap();
    assert_eq!(left(&node, "leased", "alice").await, 2000);
}

#[tokio::test(start_paused = true)]
async fn a_lease_serves_on_in_an_outage_and_then_the_nodes_share() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    assert_eq!(passes(&node, "leased", "alice", 50).await, 50);
    let before = node.store().stats();
    redis.set_down(true);
    let passed = passes(&node, "leased", "alice", 5000).await as u64;
    let after = node.store().stats();
    let by_lease = after.leases.allowed - before.leases.allowed;
    assert!(by_lease > 0);
    // Half of the burst, as one of two, and so of what was taken before.
    let taken = 50 + by_lease;
    assert_eq!(passed - by_lease, 1000 - taken.div_ceil(2));
}

#[tokio::test(start_paused = true)]
async fn quotas_too_small_to_lease_are_strict() {
    let redis = Fake::new();
    let node = redis.node(&POLICY.replace("1000/s burst 2000", "10/h"));
    assert_eq!(passes(&node, "leased", "alice", 20).await, 10);
    assert_eq!(node.store().stats().leases.allowed, 0);
    assert!(redis.runs() <= 11, "{}", redis.runs());
}

/// Calls a limit, or several, every millisecond for so many seconds. How many pass.
async fn hammer(node: &Node, limits: &[&str], seconds: u64) -> u64 {
    let (mut passed, end) = (0, Instant::now() + Duration::from_secs(seconds));
    while Instant::now() < end {
        passed += u64::from(check_all(node, limits, "alice").await.unwrap().is_allowed());
        sleep(Duration::from_millis(1)).await;
    }
    passed
}

#[tokio::test(start_paused = true)]
async fn callers_who_come_once_cost_what_they_do_under_a_strict_limit() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    for user in 0..2000 {
        assert_eq!(passes(&node, "leased", &format!("user {user}"), 1).await, 1);
    }
    let stats = node.store().stats();
    assert_eq!((stats.leases.callers, stats.leases.takes, stats.by_redis), (0, 0, 2000));
    assert_eq!((redis.runs(), redis.exchanges()), (2000, 0));
}

#[tokio::test(start_paused = true)]
async fn who_comes_again_when_told_to_gets_through() {
    for quota in ["1000/s burst 2000", "100/s burst 200", "2/s burst 100"] {
        let redis = Fake::new();
        redis.set_delay(Duration::from_millis(1));
        let node = redis.node(&POLICY.replace("1000/s burst 2000", quota));
        for cost in [1, 1, 5, 1, 5] {
            let check = || async { node.check_limit("leased", &["alice"], cost).await.unwrap() };
            let denied = loop {
                let decision = check().await;
                if decision.is_denied() {
                    break decision;
                }
            };
            let retry_after = denied.retry_after().unwrap();
            assert!(retry_after < Duration::from_secs(3), "{quota}, cost {cost}: {retry_after:?}");
            sleep(retry_after).await;
            assert!(check().await.is_allowed(), "{quota}, cost {cost}, after {retry_after:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_node_changes_is_noticed_within_a_second_by_one_that_denies() {
    let redis = Fake::new();
    redis.set_delay(Duration::from_millis(1));
    let policy = POLICY.replace("1000/s burst 2000", "1/h burst 100");
    let (node, other) = (redis.node(&policy), redis.node(&policy));
    assert_eq!(passes(&node, "leased", "alice", 200).await, 100);
    other.reset_limit("leased", &["alice"]).await.unwrap();
    assert!(is_noticed(&node).await < Duration::from_millis(1010));
    assert_eq!(hammer(&node, &["leased"], 1).await, 99);
    let quota = "1/h burst 300".parse().unwrap();
    other.set_override("leased", &["alice"], quota, Terms::permanent()).await.unwrap();
    assert!(is_noticed(&node).await < Duration::from_millis(1010));
    assert_eq!(hammer(&node, &["leased"], 1).await, 199);
}

/// How long it takes until a node that denies lets somebody pass.
async fn is_noticed(node: &Node) -> Duration {
    let since = Instant::now();
    while passes(node, "leased", "alice", 1).await == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    since.elapsed()
}

#[tokio::test(start_paused = true)]
async fn several_leased_limits_cost_few_calls_and_the_smallest_is_used() {
    let redis = Fake::new();
    redis.set_delay(Duration::from_millis(1));
    let smaller = POLICY.replace("1000/s burst 2000", "100/s burst 200");
    let smaller =
        smaller.split("[[limit]]").nth(1).unwrap().replace("'leased'\n    by", "'b'\n    by");
    let node = redis.node(&format!("{POLICY}\n[[limit]]\n{smaller}"));
    let passed = hammer(&node, &["leased", "b"], 10).await;
    assert!((1140..=1210).contains(&passed), "{passed}");
    let calls = redis.runs() + redis.exchanges();
    assert!(calls <= 2 * 25 * 10, "{calls} calls in ten seconds");
    // What the smaller denied is not spent under the larger.
    assert_eq!(node.store().stats().kept_spends, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_costs_more_than_a_take_brought_waits_for_its_own() {
    let redis = Fake::new();
    redis.set_delay(Duration::from_millis(1));
    let node = redis.node(&POLICY.replace("1000/s burst 2000", "10/s burst 100"));
    assert_eq!(passes(&node, "leased", "alice", 101).await, 100);
    sleep(Duration::from_millis(350)).await;
    // Three are there.
    let dear = || async { node.check_limit("leased", &["alice"], 5).await.unwrap() };
    let denied = dear().await;
    assert!(denied.is_denied());
    assert_eq!(passes(&node, "leased", "alice", 1).await, 1, "a cheaper one still passes");
    assert!(dear().await.is_denied());
    sleep(Duration::from_millis(700)).await;
    assert!(dear().await.is_allowed());
}
