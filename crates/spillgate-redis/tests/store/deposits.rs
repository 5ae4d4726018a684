//! What one node reserves, any node settles, and once.

use spillgate_testing::CheckLimit;
use std::time::Duration;

use spillgate_policy::store::Settlement;
use spillgate_policy::{LimitCheck, Limits, Terms};

use super::fake::{Fake, Node, left, passes};

const POLICY: &str = "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/h'";
const MINUTE: Duration = Duration::from_secs(60);

/// Spends in advance for a caller, and deposits that.
async fn reserve(node: &Node, key: &str, cost: u64, id: u128) {
    let check = LimitCheck { limit: "l", values: &[key], cost };
    let receipt = node.decide(&Limits(&[check])).await.unwrap().receipt().unwrap();
    assert!(node.deposit(&receipt, id, MINUTE).await.unwrap());
}

/// What there is once a deposit is settled; `None` if there is no such deposit.
async fn settle(node: &Node, id: u128, cost: u64) -> Option<u64> {
    let settled = node.settle_deposit(id, cost).await.unwrap()?;
    assert_eq!(settled.limit, "l");
    Some(settled.settled.unwrap().left.remaining())
}

/// Forgets the state of whoever is asked about next, as if it had expired.
fn forget_next(redis: &Fake) {
    let mut is_next = true;
    redis.before_run(move |model, entries| {
        if std::mem::take(&mut is_next) {
            model.set_state(entries[0].name, None);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn what_one_node_reserves_another_settles_once() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    reserve(&node, "alice", 6, 1).await;
    reserve(&node, "bob", 6, 2).await;
    assert_eq!(settle(&other, 1, 2).await, Some(8));
    assert_eq!((settle(&other, 1, 2).await, settle(&node, 1, 2).await), (None, None));
    assert_eq!(left(&node, "l", "alice").await, 8);
    // Debt, also for whoever reserved.
    assert_eq!(settle(&other, 2, 12).await, Some(0));
    assert_eq!(passes(&node, "l", "bob", 1).await, 0);
    assert_eq!(settle(&node, 3, 0).await, None, "nobody deposited it");
}

#[tokio::test(start_paused = true)]
async fn of_many_nodes_that_settle_at_once_one_does() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    redis.set_delay(Duration::from_millis(1));
    reserve(&node, "alice", 9, 1).await;
    // Another has spent as well, so that to give back twice would show.
    let _ = other.check_limit("l", &["alice"], 1).await.unwrap();
    let settled = tokio::join!(
        settle(&node, 1, 6),
        settle(&other, 1, 6),
        settle(&node, 1, 6),
        settle(&other, 1, 6),
    );
    let settled = <[_; 4]>::from(settled);
    assert_eq!(settled.iter().flatten().count(), 1, "{settled:?}");
    assert_eq!(left(&node, "l", "alice").await, 3);
}

#[tokio::test(start_paused = true)]
async fn what_has_expired_stays_spent() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    reserve(&node, "alice", 6, 1).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(settle(&node, 1, 0).await, None);
    assert_eq!(left(&node, "l", "alice").await, 4);
}

#[tokio::test(start_paused = true)]
async fn a_limit_with_another_quota_is_settled_and_one_that_counts_otherwise_is_not() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    let larger = redis.node(&POLICY.replace("10/h", "20/h"));
    reserve(&node, "alice", 6, 1).await;
    reserve(&node, "alice", 4, 2).await;
    assert_eq!(settle(&larger, 1, 2).await, Some(14));
    assert_eq!(left(&larger, "l", "alice").await, 14);
    for other in ["algorithm = 'fixed-window'", "per = 'ip'", "name = 'other'"] {
        let key = other.split(' ').next().unwrap();
        let lines = POLICY.lines().filter(|line| !line.starts_with(key)).chain([other]);
        let changed = redis.node(&lines.collect::<Vec<_>>().join("\n"));
        reserve(&node, "bob", 1, 3).await;
        let settled = changed.settle_deposit(3, 0).await.unwrap().unwrap();
        let Settlement { limit, reserved, settled } = settled;
        assert_eq!((limit.as_str(), reserved, settled.is_none()), ("l", 1, true), "{other}");
    }
    assert_eq!(left(&node, "l", "bob").await, 7);
}

#[tokio::test(start_paused = true)]
async fn a_caller_owes_by_the_quota_of_its_own_also_if_nothing_is_known_of_it_any_more() {
    let own = "[[limit.override]]\nuser = 'alice'\nquota = '100/s'";
    let policy = format!("{}\n{own}", POLICY.replace("10/h", "10/s"));
    let redis = Fake::new();
    let (node, other) = (redis.node(&policy), redis.node(&policy));
    reserve(&node, "alice", 50, 1).await;
    forget_next(&redis);
    assert_eq!(settle(&other, 1, 60).await, Some(90));
    assert_eq!(left(&node, "l", "alice").await, 90);
}

#[tokio::test(start_paused = true)]
async fn an_override_that_was_taken_away_does_not_come_back() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    let quota = "100/h".parse().unwrap();
    node.set_override("l", &["alice"], quota, Terms::permanent()).await.unwrap();
    reserve(&node, "alice", 50, 1).await;
    node.remove_override("l", &["alice"]).await.unwrap();
    forget_next(&redis);
    assert_eq!(settle(&other, 1, 53).await, Some(7));
    assert_eq!(left(&node, "l", "alice").await, 7);
}

#[tokio::test(start_paused = true)]
async fn while_redis_is_away_nothing_is_settled_and_afterwards_it_is() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    reserve(&node, "alice", 6, 1).await;
    redis.set_down(true);
    assert!(other.settle_deposit(1, 2).await.unwrap_err().is_store());
    let check = LimitCheck { limit: "l", values: &["bob"], cost: 1 };
    let receipt = node.decide(&Limits(&[check])).await.unwrap().receipt().unwrap();
    assert!(node.deposit(&receipt, 2, MINUTE).await.unwrap_err().is_store());
    redis.set_down(false);
    assert_eq!(settle(&other, 1, 2).await, Some(8));
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_while_it_is_settled_stays_spent_and_is_told() {
    let redis = Fake::with_slots(2);
    let node = redis.node(&POLICY.replace("10/h", "100/h"));
    let mut lost = None;
    // Each deposit is in a slot of its own: one of them is not where its caller is.
    for id in 0..40 {
        reserve(&node, "alice", 1, id).await;
        redis.set_slot_down(Some(id as u16 % 2));
        let error = node.settle_deposit(id, 1).await.err().map(|error| error.to_string());
        redis.set_slot_down(None);
        if error.is_some_and(|error| error.contains("whether the reservation was settled")) {
            lost = Some(id);
        }
    }
    assert_eq!(settle(&node, lost.unwrap(), 0).await, None);
    assert_eq!(left(&node, "l", "alice").await, 60);
}

#[tokio::test(start_paused = true)]
async fn what_has_been_refilled_of_deposits_is_not_given_back() {
    let redis = Fake::new();
    let policy = POLICY.replace("10/h", "10/min");
    let (node, other) = (redis.node(&policy), redis.node(&policy));
    for id in 0..20 {
        if id > 0 {
            tokio::time::sleep(MINUTE).await;
        }
        let check = LimitCheck { limit: "l", values: &["alice"], cost: 10 };
        let receipt = node.decide(&Limits(&[check])).await.unwrap().receipt().unwrap();
        assert!(node.deposit(&receipt, id, 60 * MINUTE).await.unwrap());
    }
    for id in 0..20 {
        assert!(settle(&other, id, 0).await.unwrap() <= 10);
    }
    assert_eq!(passes(&node, "l", "alice", 100).await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_deposit_of_a_tier_or_an_override_is_settled_by_what_it_was_counted_by() {
    let redis = Fake::new();
    let tiers = "[tier.gold]\ncallers = ['user:alice']\nl = '100/h'";
    let policy = format!("{POLICY}\n{tiers}");
    let (node, other) = (redis.node(&policy), redis.node(&policy));
    reserve(&node, "alice", 60, 1).await;
    let exchanges = redis.exchanges();
    assert_eq!(settle(&other, 1, 20).await, Some(80));
    assert_eq!(redis.exchanges(), exchanges, "one round trip");
    assert_eq!(left(&node, "l", "alice").await, 80);
    node.set_override("l", &["bob"], "50/h".parse().unwrap(), Terms::permanent()).await.unwrap();
    reserve(&node, "bob", 40, 2).await;
    assert_eq!(settle(&other, 2, 10).await, Some(40));
}
