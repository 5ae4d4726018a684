//! What clients see while more is asked than Redis answers: never what they would in an outage.

use spillgate_testing::CheckLimit;
use std::time::Duration;

use tokio::time::sleep;

use super::fake::{Fake, Node, check_all, left, passes};

fn policy(outage: &str, more: &str) -> String {
    format!(
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '1000/h'\n\
         outage = '{outage}'\n{more}"
    )
}

#[tokio::test(start_paused = true)]
async fn a_call_is_refused_whatever_the_outage_of_its_limit() {
    for outage in ["local", "open", "closed"] {
        for more in ["", "sharing = 'leased'"] {
            let redis = Fake::new();
            let node = redis.node(&policy(outage, more));
            redis.set_overloaded(true);
            for _ in 0..20 {
                let error = check_all(&node, &["l"], "alice").await.unwrap_err();
                assert!(error.is_overloaded() && error.is_store(), "{outage}: {error}");
            }
            let stats = node.store().stats();
            let decided = [stats.outage_local, stats.outage_open, stats.outage_closed];
            assert_eq!(decided, [0; 3], "{outage}");
            redis.set_overloaded(false);
            assert_eq!(passes(&node, "l", "alice", 2000).await, 1000, "{outage}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_elsewhere_is_taken_back() {
    let redis = Fake::with_slots(2);
    let both = "[[limit]]\nname = 'm'\nby-name = true\nper = 'user'\nquota = '10/h'\n\
                sharing = 'leased'\n";
    let node = redis.node(&policy("local", both));
    assert!(check_all(&node, &["l", "m"], "alice").await.unwrap().is_allowed());
    redis.set_overloaded(true);
    for _ in 0..5 {
        assert!(check_all(&node, &["l", "m"], "alice").await.unwrap_err().is_overloaded());
    }
    redis.set_overloaded(false);
    assert_eq!(passes(&node, "m", "alice", 20).await, 9);
    assert_eq!(passes(&node, "l", "alice", 2000).await, 999);
}

/// A node with refunds of 100 of 200 tokens each to so many callers, which Redis has refused.
async fn refused(redis: &Fake, callers: usize) -> Node {
    let node = redis.node(&policy("local", ""));
    for caller in 0..callers {
        let _ = node.check_limit("l", &[&caller.to_string()], 200).await.unwrap();
    }
    redis.set_overloaded(true);
    for caller in 0..callers {
        node.settle_limit("l", &[&caller.to_string()], 200, 100).await.unwrap();
    }
    node
}

#[tokio::test(start_paused = true)]
async fn refunds_that_are_refused_do_not_feed_the_overload_and_are_made_when_it_is_over() {
    let redis = Fake::new();
    let node = refused(&redis, 1000).await;
    let before = redis.runs();
    sleep(Duration::from_secs(60)).await;
    let offered = redis.runs() - before;
    assert!(offered <= 16 * 80, "{offered} calls in a minute");
    redis.set_overloaded(false);
    sleep(Duration::from_secs(2)).await;
    for caller in 0..1000 {
        // Some of it is refilled in a minute.
        let left = left(&node, "l", &caller.to_string()).await;
        assert!((900..=920).contains(&left), "{left} of {caller}");
    }
    assert_eq!(node.store().stats().dropped_refunds, 0);
}

#[tokio::test(start_paused = true)]
async fn refunds_that_wait_are_made_before_a_server_stops_or_counted_as_lost() {
    for is_over in [true, false] {
        let redis = Fake::new();
        let node = refused(&redis, 100).await;
        redis.set_overloaded(!is_over);
        node.store().shutdown().await;
        redis.set_overloaded(false);
        let other = redis.node(&policy("local", ""));
        let (lost, has) = if is_over { (0, 900) } else { (100 * 100, 800) };
        assert_eq!(node.store().stats().dropped_refunds, lost);
        assert_eq!(left(&other, "l", "7").await, has);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refund_that_is_not_answered_is_not_made_again_and_counts_as_lost() {
    let redis = Fake::new();
    let node = refused(&redis, 1).await;
    redis.lose_answers(0..usize::MAX);
    redis.set_overloaded(false);
    sleep(Duration::from_secs(5)).await;
    redis.lose_answers(0..0);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(left(&node, "l", "0").await, 902, "once, and ten seconds are refilled");
    assert_eq!(node.store().stats().dropped_refunds, 100);
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_counts_as_soon_as_redis_can_be_asked() {
    for outage in ["local", "open", "closed"] {
        let redis = Fake::new();
        let node = redis.node(&policy(outage, ""));
        for user in ["alice", "bob"] {
            let _ = node.check_limit("l", &[user], 100).await.unwrap();
        }
        redis.set_overloaded(true);
        node.settle_limit("l", &["alice"], 100, 300).await.unwrap();
        node.settle_limit("l", &["bob"], 100, 40).await.unwrap();
        sleep(Duration::from_secs(2)).await;
        redis.set_overloaded(false);
        assert_eq!(left(&node, "l", "alice").await, 700, "{outage}");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(left(&node, "l", "bob").await, 960, "{outage}");
    }
}
