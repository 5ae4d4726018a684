//! Permits that programs acquire, renew and release by their ids.

use std::time::Duration;

use spillgate_policy::store::{PermitId, Store};
use tokio::time::sleep;

use super::{TTL, limit, nodes};
use crate::store::fake::Fake;

#[tokio::test(start_paused = true)]
async fn what_one_program_acquires_another_node_renews_and_releases_once() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(5));
    let first = one.acquire("ann", 3, TTL).await.unwrap();
    assert!(other.acquire("ann", 3, TTL).await.is_none(), "two are left");
    assert!(other.acquire("bob", 3, TTL).await.is_some(), "each key has its own");
    let second = other.acquire("ann", 2, TTL).await.unwrap();
    assert!(one.acquire("ann", 1, TTL).await.is_none());
    sleep(TTL - Duration::from_secs(1)).await;
    assert!(other.store.renew(&other.limits, first, TTL).await.unwrap());
    sleep(Duration::from_secs(1)).await;
    assert!(!one.store.release(&one.limits, second).await.unwrap(), "it has expired");
    assert!(other.store.release(&other.limits, first).await.unwrap());
    assert!(!one.store.release(&one.limits, first).await.unwrap(), "once");
    assert!(!one.store.renew(&one.limits, first, TTL).await.unwrap());
    assert!(!one.store.release(&one.limits, PermitId([7; 32])).await.unwrap(), "never acquired");
    assert!(one.acquire("ann", 5, TTL).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn permits_that_a_program_does_not_release_are_counted() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(5));
    one.acquire("ann", 3, TTL).await.unwrap();
    sleep(TTL).await;
    assert!(other.acquire("ann", 5, TTL).await.is_some());
    assert_eq!(one.expired() + other.expired(), 3);
    assert_eq!(other.store.stats().permits.expired, other.expired());
}
