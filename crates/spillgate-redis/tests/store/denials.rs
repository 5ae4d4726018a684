//! A blocked caller costs Redis next to nothing.

use spillgate_testing::CheckLimit;
use std::sync::Arc;
use std::time::Duration;

use spillgate::Verdict;
use spillgate_redis::Settings;
use tokio::time::{Instant, sleep};

use super::fake::{Fake, Node, check_all, passes};

const ONE: &str = "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = ";

/// Lets eight tasks ask for a caller all the time, for so long.
async fn hammer(node: &Arc<Node>, time: Duration) {
    let end = Instant::now() + time;
    let hammer = |node: Arc<Node>| async move {
        while Instant::now() < end {
            let _ = node.check_limit("l", &["mallory"], 1).await.unwrap();
            sleep(Duration::from_micros(500)).await;
        }
    };
    let tasks: Vec<_> = (0..8).map(|_| tokio::spawn(hammer(Arc::clone(node)))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn commands_of_a_blocked_caller(quota: &str, time: Duration) -> usize {
    let redis = Fake::new();
    redis.set_delay(Duration::from_millis(2));
    let node = Arc::new(redis.node(&format!("{ONE}'{quota}'")));
    while passes(&node, "l", "mallory", 1).await == 1 {}
    let before = redis.runs();
    hammer(&node, time).await;
    redis.runs() - before
}

#[tokio::test(start_paused = true)]
async fn a_caller_blocked_for_long_costs_one_command_a_second() {
    let commands = commands_of_a_blocked_caller("3/h", Duration::from_secs(30)).await;
    assert!((29..=30).contains(&commands), "{commands}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_blocked_for_moments_costs_one_command_each_time_it_may_pass() {
    let commands = commands_of_a_blocked_caller("10/s", Duration::from_secs(30)).await;
    assert!((290..=301).contains(&commands), "{commands}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_can_never_pass_costs_one_command_a_second() {
    let redis = Fake::new();
    let node = redis.node(&format!("{ONE}'3/h'"));
    for _ in 0..100 {
        let decision = node.check_limit("l", &["mallory"], 4).await.unwrap();
        assert_eq!(decision.verdict(), Verdict::Never);
        assert_eq!(decision.remaining(), 3);
        sleep(Duration::from_millis(50)).await;
    }
    assert!(redis.runs() <= 5, "{}", redis.runs());
    // A cheaper one asks.
    assert_eq!(passes(&node, "l", "mallory", 1).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_another_node_resets_is_noticed_within_a_second() {
    let redis = Fake::new();
    let policy = format!("{ONE}'3/h'");
    let (node, other) = (redis.node(&policy), redis.node(&policy));
    assert_eq!(passes(&node, "l", "alice", 5).await, 3);
    other.reset_limit("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 5).await, 0);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(passes(&node, "l", "alice", 5).await, 3);
}

#[tokio::test(start_paused = true)]
async fn what_this_node_resets_or_gives_back_is_noticed_at_once() {
    let redis = Fake::new();
    let node = redis.node(&format!("{ONE}'3/h'"));
    assert_eq!(passes(&node, "l", "alice", 5).await, 3);
    node.reset_limit("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 5).await, 3);
    node.settle_limit("l", &["alice"], 2, 0).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 5).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_denial_from_memory_tells_of_all_limits_that_were_denied_together() {
    let redis = Fake::new();
    let node = redis.node(
        "[[limit]]\nname = 'a'\nby-name = true\nper = 'user'\nquota = '9/h'\n\
         [[limit]]\nname = 'b'\nby-name = true\nper = 'user'\nquota = '2/h'",
    );
    for _ in 0..3 {
        let _ = check_all(&node, &["a", "b"], "alice").await.unwrap();
    }
    let before = redis.runs();
    let denied = check_all(&node, &["a", "b"], "alice").await.unwrap();
    assert_eq!(redis.runs(), before);
    assert_eq!(denied.denied_by(), Some("b"));
    let left: Vec<_> = denied.limits().map(|limit| limit.decision().remaining()).collect();
    assert_eq!(left, [7, 0]);
    // What the other limit has left is not spent by this.
    assert_eq!(passes(&node, "a", "alice", 9).await, 7);
}

#[tokio::test(start_paused = true)]
async fn with_nothing_to_be_remembered_every_call_asks() {
    let redis = Fake::new();
    let settings = Settings::default().nodes(1.try_into().unwrap()).remembered(0);
    let node = redis.node_with(&format!("{ONE}'3/h'"), &settings);
    assert_eq!(passes(&node, "l", "alice", 10).await, 3);
    assert_eq!(redis.runs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_has_gone_back_denies_for_longer_unless_nobody_can_be_in_debt() {
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-window", "interval-bucket"]
    {
        for (debt, is_cut) in [("", false), ("max-debt = 0", true)] {
            let redis = Fake::new();
            let node = redis.node(&format!("{ONE}'10/min'\nalgorithm = '{algorithm}'\n{debt}"));
            assert_eq!(passes(&node, "l", "mallory", 12).await, 10);
            redis.set_back(Duration::from_secs(3600));
            sleep(Duration::from_secs(2)).await;
            // All is still spent, by any of them.
            assert_eq!(passes(&node, "l", "mallory", 5).await, 0, "{algorithm}");
            sleep(Duration::from_secs(130)).await;
            let expected = if is_cut { 10 } else { 0 };
            assert_eq!(passes(&node, "l", "mallory", 12).await, expected, "{algorithm} {debt}");
            assert_eq!(node.store().stats().cut, u64::from(is_cut), "{algorithm} {debt}");
        }
    }
}
