//! What clients see while more is asked than Redis answers: never what they would in an outage.

use spillgate_testing::CheckLimit;
use std::time::Duration;

use tokio::time::sleep;

use super::fake::{Fake, check_all, left, passes};

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
