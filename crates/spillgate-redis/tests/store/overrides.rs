//! Quotas given at run time, on all nodes.

use spillgate_testing::CheckLimit;
use std::time::Duration;

use spillgate::{AlgorithmKind, Quota};
use spillgate_policy::{Policy, Terms};
use tokio::time::sleep;

use super::fake::{Fake, check_all, left, passes};

const POLICY: &str = "
    [[limit]]
    name = 'l'
    by-name = true
    per = 'user'
    quota = '10/h'

    [[limit.override]]
    user = 'partner'
    quota = '30/h'
";

fn quota(text: &str) -> Quota {
    text.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_override_counts_on_every_node_at_its_next_question() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    assert_eq!(passes(&other, "l", "alice", 4).await, 4);
    node.set_override("l", &["alice"], quota("20/h"), Terms::permanent()).await.unwrap();
    assert_eq!(left(&other, "l", "alice").await, 16);
    assert_eq!(passes(&other, "l", "alice", 30).await, 16);
    assert_eq!(passes(&node, "l", "alice", 30).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_knows_of_an_override_asks_once() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    node.set_override("l", &["alice"], quota("20/h"), Terms::permanent()).await.unwrap();
    let calls = || redis.runs() + redis.exchanges();
    let before = calls();
    assert_eq!(passes(&other, "l", "alice", 10).await, 10);
    assert_eq!(calls() - before, 11);
}

#[tokio::test(start_paused = true)]
async fn an_override_that_is_taken_away_is_gone_everywhere() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    node.set_override("l", &["alice"], quota("20/h"), Terms::permanent()).await.unwrap();
    assert_eq!(passes(&other, "l", "alice", 12).await, 12);
    node.remove_override("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&other, "l", "alice", 3).await, 0);
    assert_eq!(left(&node, "l", "alice").await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_override_does_not_come_back_by_a_node_that_has_not_asked_since_it_went() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    node.set_override("l", &["alice"], quota("20/h"), Terms::permanent()).await.unwrap();
    assert_eq!(passes(&other, "l", "alice", 1).await, 1);
    node.remove_override("l", &["alice"]).await.unwrap();
    // The state goes no sooner than a second after the last that was written.
    sleep(Duration::from_secs(1)).await;
    redis.model().flush();
    assert_eq!(passes(&other, "l", "alice", 30).await, 10);
    assert_eq!(node.check_limit("l", &["alice"], 0).await.unwrap().limit(), 10);
}

/// The state may expire while a call is on its way that was made by the override.
#[tokio::test(start_paused = true)]
async fn an_override_does_not_come_back_by_a_call_that_was_held_up() {
    for sharing in ["strict", "leased"] {
        let policy = format!(
            "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '100/h'\nsharing = '{sharing}'"
        );
        let redis = Fake::new();
        let (node, other) = (redis.node(&policy), redis.node(&policy));
        node.set_override("l", &["alice"], quota("200/h"), Terms::permanent()).await.unwrap();
        assert_eq!(passes(&other, "l", "alice", 1).await, 1);
        node.remove_override("l", &["alice"]).await.unwrap();
        redis.model().flush();
        assert_eq!(passes(&other, "l", "alice", 300).await, 100, "{sharing}");
        assert_eq!(node.check_limit("l", &["alice"], 0).await.unwrap().limit(), 100);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_leaves_the_override() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    node.set_override("l", &["alice"], quota("20/h"), Terms::permanent()).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 30).await, 20);
    node.reset_limit("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 30).await, 20);
}

#[tokio::test(start_paused = true)]
async fn what_the_policy_gives_can_be_replaced_and_taken_away() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    assert_eq!(left(&node, "l", "partner").await, 30);
    node.set_override("l", &["partner"], quota("40/h"), Terms::permanent()).await.unwrap();
    assert_eq!(left(&other, "l", "partner").await, 40);
    node.remove_override("l", &["partner"]).await.unwrap();
    assert_eq!(left(&other, "l", "partner").await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_cannot_be_counted_is_refused_by_name() {
    let redis = Fake::new();
    let node = redis
        .node("[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/h'\nalgorithm = 'fixed-window'");
    let error = node
        .set_override("l", &["alice"], quota("10/h burst 20"), Terms::permanent())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("limit \"l\": a fixed window has no burst"), "{error}");
}

/// The quota of a limit that is used up in a day, and of one who is punished.
fn daily(own: &str) -> String {
    let policy = "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '1000/day'\n";
    match own {
        "" => policy.to_owned(),
        own => format!("{policy}[[limit.override]]\nuser = 'alice'\nquota = '{own}'\n"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_override_that_punishes_forgives_nothing_when_it_goes() {
    for kind in AlgorithmKind::ALL {
        let redis = Fake::new();
        let policy = format!("{}algorithm = '{kind}'", daily(""));
        let (node, other) = (redis.node(&policy), redis.node(&policy));
        assert_eq!(passes(&node, "l", "alice", 1001).await, 1000, "{kind}");
        for punished in ["1/day", "2/day"] {
            node.set_override("l", &["alice"], quota(punished), Terms::permanent()).await.unwrap();
            passes(&other, "l", "alice", 3).await;
        }
        node.remove_override("l", &["alice"]).await.unwrap();
        assert_eq!(passes(&other, "l", "alice", 9).await, 0, "{kind}");
        assert_eq!(left(&node, "l", "alice").await, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_override_of_the_policy_that_punishes_forgives_nothing_when_it_goes() {
    for kind in AlgorithmKind::ALL {
        let policy = |own: &str| {
            let algorithm = format!("quota = '1000/day'\nalgorithm = '{kind}'");
            Policy::from_toml(&daily(own).replace("quota = '1000/day'", &algorithm)).unwrap()
        };
        let redis = Fake::new();
        let node = redis.node("limit = []");
        let _ = node.replace(policy("")).unwrap();
        assert_eq!(passes(&node, "l", "alice", 500).await, 500, "{kind}");
        let _ = node.replace(policy("2000/day")).unwrap();
        assert_eq!(passes(&node, "l", "alice", 1).await, 1, "{kind}");
        let _ = node.replace(policy("502/day")).unwrap();
        assert_eq!(passes(&node, "l", "alice", 9).await, 1, "{kind}");
        let _ = node.replace(policy("")).unwrap();
        assert_eq!(passes(&node, "l", "alice", 999).await, 498, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_before_an_override_counts_again_if_it_is_stricter() {
    let redis = Fake::new();
    let node = redis.node(&daily(""));
    assert_eq!(passes(&node, "l", "alice", 900).await, 900);
    // Refilled at once.
    node.set_override("l", &["alice"], quota("1000/s"), Terms::permanent()).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(passes(&node, "l", "alice", 2000).await, 1000);
    sleep(Duration::from_secs(2)).await;
    node.remove_override("l", &["alice"]).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 100);
}

#[tokio::test(start_paused = true)]
async fn a_reset_forgives_what_was_spent_before_an_override_too() {
    let redis = Fake::new();
    let node = redis.node(&daily(""));
    assert_eq!(passes(&node, "l", "alice", 1000).await, 1000);
    node.set_override("l", &["alice"], quota("5/day"), Terms::permanent()).await.unwrap();
    node.reset_limit("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 9).await, 5);
    node.remove_override("l", &["alice"]).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 995);
}

#[tokio::test(start_paused = true)]
async fn one_that_stands_in_for_an_override_of_the_policy_is_punished_like_any() {
    let redis = Fake::new();
    let node = redis.node(&daily("2000/day"));
    node.set_override("l", &["alice"], quota("3000/day"), Terms::permanent()).await.unwrap();
    // The policy's is taken away: the limit's quota stands in for it.
    node.remove_override("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 2000).await, 1000);
    node.set_override("l", &["alice"], quota("1/day"), Terms::permanent()).await.unwrap();
    node.remove_override("l", &["alice"]).await.unwrap();
    assert_eq!(passes(&node, "l", "alice", 9).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_before_stays_while_spends_are_taken_back() {
    let redis = Fake::with_slots(200);
    let limits = "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '1000/day'\n\
                  [[limit.override]]\nuser = 'alice'\nquota = '2000/day'\n\
                  [[limit]]\nname = 'm'\nby-name = true\nper = 'user'\nquota = '3/day'";
    let node = redis.node(&limits.replace("user = 'alice'", "user = 'bob'"));
    assert_eq!(passes(&node, "l", "alice", 900).await, 900);
    let _ = node.replace(Policy::from_toml(limits).unwrap()).unwrap();
    for _ in 0..9 {
        let _ = check_all(&node, &["l", "m"], "alice").await.unwrap();
    }
    assert!(node.store().stats().undone > 0 && node.store().stats().kept_spends == 0);
    assert_eq!(left(&node, "l", "alice").await, 1097);
    node.reset_limit("m", &["alice"]).await.unwrap();
    let _ = node.replace(Policy::from_toml(&limits.replace("'alice'", "'bob'")).unwrap()).unwrap();
    assert_eq!(left(&node, "l", "alice").await, 97);
}
