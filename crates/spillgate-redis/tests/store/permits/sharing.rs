//! How nodes share the permits of requests.

use std::time::Duration;

use spillgate_policy::store::{Permits, Spend, Store};
use spillgate_policy::{Answer, Gate, Key, LimitCheck, Limits, Policy};
use spillgate_redis::{RedisStore, Settings};
use tokio::time::sleep;

use super::{HoldNode, TTL, limit, nodes, spend};
use crate::store::fake::Fake;

#[tokio::test(start_paused = true)]
async fn nodes_and_programs_together_hold_no_more_than_the_limit() {
    let redis = Fake::new();
    for permits in [1, 2, 5, 100] {
        let spec = limit(permits);
        let [one, other] = nodes(&redis, &spec);
        let key = format!("ann under {permits}");
        let held = one.hold_all(&key).await;
        assert_eq!(held.len() as u64, permits);
        assert!(other.hold(&key, 1).await.is_none());
        assert!(other.acquire(&key, 1, TTL).await.is_none());
        drop(held);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(other.hold_all(&key).await.len() as u64, permits, "all came back");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_released_is_handed_out_again_without_redis() {
    let redis = Fake::new();
    let [one, _] = nodes(&redis, &limit(100));
    assert!(one.hold_now("ann").is_none(), "nothing is known yet");
    drop(one.hold("ann", 1).await.unwrap());
    let calls = redis.permit_calls();
    for _ in 0..1000 {
        assert!(one.hold_now("ann").unwrap().is_some());
    }
    assert_eq!(redis.permit_calls(), calls);
    assert_eq!(one.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_busy_node_takes_more_than_it_needs_and_gives_it_back_once_idle() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(1000));
    let held = one.hold_all("ann").await;
    drop(held);
    // As many at once as it had are no news for Redis.
    let calls = redis.permit_calls();
    let mut held: Vec<_> = (0..500).map(|_| one.hold_now("ann").unwrap().unwrap()).collect();
    assert_eq!(redis.permit_calls(), calls);
    held.truncate(3);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(other.hold_all("ann").await.len(), 997, "what is in flight stays");
    assert_eq!(one.held(), 3);
}

#[tokio::test(start_paused = true)]
async fn small_limits_are_not_hoarded() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(4));
    for _ in 0..20 {
        drop(one.hold("ann", 2).await);
    }
    assert!(other.hold("ann", 2).await.is_some(), "it took what it needed");
    let [one, other] = nodes(&redis, &limit(1));
    drop(one.hold("bob", 1).await.unwrap());
    sleep(Duration::from_millis(101)).await;
    assert!(other.hold("bob", 1).await.is_some(), "it gives back soon");
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_remembered_for_a_moment() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(4));
    let held = one.hold("ann", 4).await.unwrap();
    assert!(other.hold("ann", 2).await.is_none());
    let calls = redis.permit_calls();
    for _ in 0..100 {
        assert!(other.hold("ann", 2).await.is_none());
        assert!(other.hold_now("ann").is_none(), "one might be there: two were denied");
    }
    assert_eq!(redis.permit_calls(), calls);
    drop(held);
    sleep(Duration::from_millis(101)).await;
    assert!(other.hold("ann", 2).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn permits_in_flight_are_renewed_for_as_long_as_it_takes() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(3));
    let held = one.hold("ann", 3).await.unwrap();
    sleep(20 * TTL).await;
    assert!(other.hold("ann", 1).await.is_none());
    assert_eq!(one.expired(), 0);
    drop(held);
    sleep(Duration::from_millis(101)).await;
    assert!(other.hold("ann", 3).await.is_some());
    drop(one);
}

#[tokio::test(start_paused = true)]
async fn in_shadow_mode_permits_are_held_beyond_the_limit_and_counted_by_all() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(2));
    let hold = async |node: &HoldNode, count| {
        let (mut spends, mut permits) = ([spend("ann", count)], Permits::new());
        spends[0].is_shadow = true;
        node.store.hold(&node.limits, &mut spends, &mut permits).await.unwrap();
        (spends[0].decision.unwrap().is_allowed(), permits)
    };
    let (is_allowed, first) = hold(&one, 2).await;
    assert!(is_allowed);
    let (is_allowed, second) = hold(&one, 3).await;
    assert!(!is_allowed);
    assert_eq!((second.len(), one.held()), (1, 5));
    sleep(Duration::from_secs(1)).await;
    drop(first);
    let (is_allowed, third) = hold(&other, 1).await;
    assert!(!is_allowed, "three of two are in flight elsewhere");
    drop((second, third));
    sleep(Duration::from_secs(1)).await;
    assert!(hold(&other, 2).await.0);
}

#[tokio::test(start_paused = true)]
async fn all_limits_of_a_request_are_held_or_none() {
    let redis = Fake::new();
    let settings = Settings::default().nodes(2.try_into().unwrap()).clock(redis.clock());
    let store = RedisStore::new(redis.clone(), &settings).unwrap();
    let mut specs = [limit(9), limit(1)];
    specs[1].name = "exports".to_owned();
    let limits = store.open(&specs).unwrap();
    let both = || [spend("ann", 1), Spend::new(1, Key::from_bytes(b"ann"), 1)];
    let (mut spends, mut first) = (both(), Permits::new());
    store.hold(&limits, &mut spends, &mut first).await.unwrap();
    assert_eq!(first.len(), 2);
    let (mut spends, mut second) = (both(), Permits::new());
    store.hold(&limits, &mut spends, &mut second).await.unwrap();
    assert!(second.is_empty() && spends[1].decision.unwrap().is_denied());
    assert_eq!(store.usage(&limits, 0).unwrap().held, 1);
    // A policy without a limit forgets nothing that is held under it.
    let fewer = store.reopen(&limits, &specs[..1]).unwrap();
    drop(limits);
    let again = store.reopen(&fewer, &specs).unwrap();
    assert_eq!(store.usage(&again, 1).unwrap().held, 1);
    drop(first);
    assert_eq!(store.usage(&again, 1).unwrap().held, 0);
}

#[tokio::test(start_paused = true)]
async fn an_override_is_this_nodes_knowledge_of_the_limit() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(4));
    let ann = Key::from_bytes(b"ann");
    let three = Some("burst 3".parse().unwrap());
    one.store.set_override(&one.limits, 0, &ann, three, None).await.unwrap();
    let mut held = one.hold_all("ann").await;
    assert_eq!(held.len(), 3);
    assert_eq!(other.hold_all("ann").await.len(), 1, "by the policy there are four");
    // Fewer than are in flight: holders keep theirs, and others do not get them.
    let two = Some("burst 2".parse().unwrap());
    one.store.set_override(&one.limits, 0, &ann, two, None).await.unwrap();
    sleep(TTL).await;
    assert_eq!((one.held(), one.expired()), (3, 0));
    assert_eq!(other.hold_all("ann").await.len(), 1);
    held.truncate(1);
    sleep(Duration::from_millis(101)).await;
    assert_eq!(one.hold_all("ann").await.len(), 1);
    one.store.set_override(&one.limits, 0, &ann, None, None).await.unwrap();
    assert_eq!(one.hold_all("ann").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn requests_that_come_together_are_served_by_few_calls() {
    let redis = Fake::new();
    let [one, _] = nodes(&redis, &limit(200));
    redis.set_delay(Duration::from_millis(2));
    let holds = (0..100).map(|_| one.hold("ann", 1));
    let held = futures_util::future::join_all(holds).await;
    assert!(held.iter().all(Option::is_some));
    assert!(redis.permit_calls() <= 3, "{} calls", redis.permit_calls());
}

/// A request that is dropped while it waits takes nothing with it.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_while_it_waits_holds_nothing() {
    let redis = Fake::new();
    let [one, other] = nodes(&redis, &limit(3));
    redis.set_delay(Duration::from_millis(2));
    let waited = tokio::time::timeout(Duration::from_millis(1), one.hold("ann", 3)).await;
    assert!(waited.is_err());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(other.hold_all("ann").await.len(), 3);
    assert_eq!(one.held(), 0);
}

/// What a gate says of each limit that a check met.
async fn states<S: Store>(gate: &Gate<S>, counts: [u64; 3]) -> (Answer, Vec<(String, bool, u64)>) {
    let check = |(limit, cost)| LimitCheck { limit, values: &["ann"], cost };
    let checks = ["small", "middle", "large"].into_iter().zip(counts).map(check);
    let outcome = gate.decide(&Limits(&checks.collect::<Vec<_>>())).await.unwrap();
    let limits = outcome.limits().map(|limit| {
        let decision = limit.decision();
        (limit.name().to_owned(), decision.is_allowed(), decision.remaining())
    });
    (outcome.answer(), limits.collect())
}

#[tokio::test(start_paused = true)]
async fn of_several_limits_of_which_one_denies_the_decisions_are_those_of_a_store_in_memory() {
    let limit = |name, permits| {
        format!(
            "[[limit]]\nname = '{name}'\nby-name = true\nper = 'user'\nconcurrent = {permits}\n"
        )
    };
    let policy = [limit("small", 2), limit("middle", 5), limit("large", 9)].concat();
    let redis = Fake::new();
    let shared = redis.node(&policy);
    let alone = Gate::new(Policy::from_toml(&policy).unwrap()).unwrap();
    for counts in [[1, 1, 1], [3, 1, 1], [1, 6, 1], [1, 1, 10], [3, 6, 10], [2, 5, 9], [0, 9, 1]] {
        // At first the other node has to be asked.
        for round in 0..3 {
            let expected = states(&alone, counts).await;
            assert_eq!(states(&shared, counts).await, expected, "{counts:?}, round {round}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_about_permits_in_shadow_mode_is_told_and_they_are_held() {
    let redis = Fake::new();
    let node = redis.node(
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nconcurrent = 2\nmode = 'shadow'\n",
    );
    redis.set_down(true);
    let outcome = node.decide(&LimitCheck::new("l", &["ann"], 1)).await.unwrap();
    assert!(outcome.is_allowed());
    assert!(outcome.shadow_error().unwrap().is_store());
    assert_eq!(node.usage()[0].1.held, 1);
    drop(outcome);
    redis.set_down(false);
    let outcome = node.decide(&LimitCheck::new("l", &["ann"], 1)).await.unwrap();
    assert!(outcome.shadow_error().is_none());
}
