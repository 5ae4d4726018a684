//! What becomes of permits when nodes die or Redis is away.

use std::time::Duration;

use spillgate_policy::store::{Outage, Permits, Store};
use tokio::time::sleep;

use super::{HoldNode, TTL, limit, limit_with, nodes, spend};
use crate::store::fake::Fake;

#[tokio::test(start_paused = true)]
async fn a_node_that_dies_holds_its_permits_until_they_expire() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(3));
    let held = one.hold("ann", 3).await.unwrap();
    let HoldNode { store, limits } = one;
    drop((store, limits));
    sleep(TTL - Duration::from_millis(1)).await;
    assert!(other.hold("ann", 1).await.is_none());
    sleep(Duration::from_millis(51)).await;
    assert!(other.hold("ann", 3).await.is_some());
    assert_eq!(other.expired(), 0, "whoever held them is dead");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_shuts_down_gives_back_what_is_not_in_flight() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(100));
    let mut held = one.hold_all("ann").await;
    held.truncate(2);
    one.store.shutdown().await;
    assert_eq!(other.hold_all("ann").await.len(), 98);
}

#[tokio::test(start_paused = true)]
async fn holders_that_outlive_their_slice_are_counted_and_covered_again_if_there_is_room() {
    let redis = Fake::new();
    let spec = limit_with(3, Outage::Closed);
    let [one, other] = nodes(&redis, &spec);
    let held = one.hold("ann", 2).await.unwrap();
    redis.set_down(true);
    // In time it stops to hand out what others may get, however its clock is slewed.
    sleep(TTL - TTL / 6 - Duration::from_millis(1)).await;
    assert_eq!(one.expired(), 0);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(one.expired(), 2);
    redis.set_down(false);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(other.hold_all("ann").await.len(), 1, "they are covered again");
    assert_eq!(one.expired(), 2, "once");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn holders_whose_permits_others_got_run_out() {
    let redis = Fake::new();
    let spec = limit_with(3, Outage::Closed);
    let [one, other] = nodes(&redis, &spec);
    let held = one.hold("ann", 3).await.unwrap();
    // A flush is an outage that only shows afterwards.
    redis.model().flush();
    let others = other.hold("ann", 2).await.unwrap();
    sleep(TTL).await;
    assert_eq!(one.expired(), 2, "one of three was still free");
    assert!(one.hold("ann", 1).await.is_none());
    drop(held);
    sleep(Duration::from_millis(101)).await;
    assert_eq!(one.hold_all("ann").await.len(), 1);
    drop(others);
}

#[tokio::test(start_paused = true)]
async fn an_outage_leaves_a_node_its_share_lets_all_pass_or_none() {
    let redis = Fake::new();
    let node = |outage| HoldNode::new(&redis, &limit_with(10, outage));
    let (local, open, closed) = (node(Outage::Local), node(Outage::Open), node(Outage::Closed));
    redis.set_down(true);
    let held = local.hold_all("ann").await;
    assert_eq!(held.len(), 5, "one of two nodes");
    let (mut spends, mut permits) = ([spend("ann", 1)], Permits::new());
    for _ in 0..20 {
        open.store.hold(&open.limits, &mut spends, &mut permits).await.unwrap();
        assert_eq!(spends[0].decision, None);
    }
    assert_eq!((permits.len(), open.held()), (20, 20));
    let refused = closed.store.hold(&closed.limits, &mut spends, &mut permits).await;
    assert!(refused.unwrap_err().is_store());
    assert!(closed.store.acquire(&closed.limits, &spends[0], TTL).await.unwrap_err().is_store());
    drop(permits);
    // What was held meanwhile counts as soon as Redis is back.
    redis.set_down(false);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(closed.hold_all("ann").await.len(), 5);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn overload_is_not_an_outage() {
    let redis = Fake::new();
    let [one, _] = nodes(&redis, &limit_with(10, Outage::Open));
    redis.set_overloaded(true);
    let (mut spends, mut permits) = ([spend("ann", 1)], Permits::new());
    let refused = one.store.hold(&one.limits, &mut spends, &mut permits).await.unwrap_err();
    assert!(refused.is_overloaded());
    assert_eq!(one.held(), 0);
}
