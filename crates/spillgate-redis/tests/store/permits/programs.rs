//! Permits that programs acquire, renew and release by their ids.

use std::time::Duration;

use spillgate_policy::store::{PermitId, Store};
use spillgate_redis::Name;
use spillgate_redis::backend::{PermitCall, PermitOp, Wanted};
use tokio::time::{sleep, timeout};

use super::{HoldNode, TTL, limit, nodes, spend};
use crate::store::fake::{Fake, TIME_OUT, polled};

/// How long it takes to give back what nobody has got.
const SOON: Duration = Duration::from_secs(1);

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

#[tokio::test(start_paused = true)]
async fn permits_whose_reply_was_lost_are_given_back() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(5));
    redis.lose_answers(0..usize::MAX);
    for _ in 0..5 {
        let lost = one.store.acquire(&one.limits, &spend("ann", 1), TTL).await;
        assert!(lost.unwrap_err().is_store());
    }
    redis.lose_answers(0..0);
    sleep(SOON).await;
    assert!(other.acquire("ann", 5, TTL).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn they_are_given_back_once_redis_answers_and_no_longer_than_they_would_last() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(5));
    let lose = async || {
        redis.lose_answers(0..usize::MAX);
        let lost = one.store.acquire(&one.limits, &spend("ann", 5), TTL).await;
        assert!(lost.unwrap_err().is_store());
        redis.lose_answers(0..0);
        redis.set_down(true);
    };
    lose().await;
    sleep(TTL / 2).await;
    redis.set_down(false);
    sleep(2 * SOON).await;
    let id = other.acquire("ann", 5, TTL).await.unwrap();
    assert!(other.store.release(&other.limits, id).await.unwrap());
    lose().await;
    sleep(TTL + 3 * SOON).await;
    let calls = redis.permit_calls();
    sleep(TTL).await;
    assert_eq!(redis.permit_calls(), calls, "they have expired");
}

#[tokio::test(start_paused = true)]
async fn permits_of_a_program_that_went_away_are_given_back_wherever_it_stood() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(5));
    redis.set_delay(Duration::from_millis(10));
    redis.set_answer_delay(Duration::from_millis(10));
    let all_are_free = async |when: &str| {
        sleep(SOON).await;
        let id = other.acquire("ann", 5, TTL).await;
        let id = id.unwrap_or_else(|| panic!("some are held by nobody: {when}"));
        assert!(other.store.release(&other.limits, id).await.unwrap());
    };
    let (mut polls, five) = (0, spend("ann", 5));
    loop {
        let acquiring = one.store.acquire(&one.limits, &five, TTL);
        if polled(polls, acquiring).await.is_some() {
            break;
        }
        all_are_free(&format!("{polls} polls")).await;
        polls += 1;
    }
    assert!(polls > 1, "it was never waited for");
    sleep(TTL).await;
    // On the way there, on the way back, and when the answer is there.
    for millis in 0..20 {
        let acquiring = one.store.acquire(&one.limits, &five, TTL);
        assert!(timeout(Duration::from_millis(millis), acquiring).await.is_err());
        all_are_free(&format!("{millis} ms")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_what_is_to_be_given_back() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(5));
    redis.set_delay(Duration::from_millis(10));
    redis.set_answer_delay(Duration::from_millis(10));
    let five = spend("ann", 5);
    let acquiring = one.store.acquire(&one.limits, &five, TTL);
    assert!(timeout(Duration::from_millis(5), acquiring).await.is_err());
    one.store.shutdown().await;
    let HoldNode { store, limits } = one;
    drop((store, limits));
    assert!(other.acquire("ann", 5, TTL).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_arrives_after_its_permits_were_given_back_holds_none() {
    let redis = Fake::new();
    let [name, holder] = [1, 2].map(|byte| Name::from_bytes([byte; 16]));
    let call = |op| PermitCall { name, holder, op };
    let late = TIME_OUT;
    let revoke = call(PermitOp::Revoke { late });
    assert!(!redis.model().permits_now(&revoke).is_done, "nothing is held yet");
    let hold = call(PermitOp::Hold(Wanted::exactly(3, 5, TTL)));
    let reply = redis.model().permits_now(&hold);
    assert_eq!((reply.is_done, reply.held, reply.total), (false, 0, 0));
}
