//! What several nodes admit while Redis comes back: not all of them can ask it at once.

use std::time::Duration;

use futures_util::future::join_all;
use spillgate_redis::Settings;
use spillgate_testing::CheckLimit;
use tokio::time::{Instant, sleep};

use super::fake::{Fake, Node, passes};
use crate::common::{Bound, Span};

const NODES: u32 = 4;
const BURST: u64 = 200;
const BOUND: Bound = Bound { burst: BURST, interval: 10_000_000 };

fn policy(more: &str) -> String {
    format!(
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '100/s burst 200'\n{more}"
    )
}

/// Nodes with a path each.
fn nodes(redis: &Fake, more: &str) -> Vec<(Fake, Node)> {
    let settings = Settings::default().nodes(NODES.try_into().unwrap());
    let node = |path: Fake| (path.clone(), path.node_with(&policy(more), &settings));
    (0..NODES).map(|_| node(redis.path())).collect()
}

/// All nodes are asked all the time, this many times a second together. Returns when calls were
/// admitted, in nanoseconds.
async fn hammer(nodes: &[(Fake, Node)], begin: Instant, lasts: Duration, rate: u64) -> Vec<Span> {
    let (end, mut admitted) = (Instant::now() + lasts, Vec::new());
    let every = Duration::from_secs(u64::from(NODES)).div_f64(rate as f64);
    while Instant::now() < end {
        for (_, node) in nodes {
            if node.check_limit("l", &["alice"], 1).await.unwrap().is_allowed() {
                let now = begin.elapsed().as_nanos() as u64;
                admitted.push((now, now));
            }
        }
        sleep(every).await;
    }
    admitted
}

/// What is admitted beyond the quota if Redis is away for a while, and nodes reach it again one
/// after the other.
async fn excess(more: &str, rate: u64, apart: Duration) -> u64 {
    let redis = Fake::new();
    let nodes = nodes(&redis, more);
    let begin = Instant::now();
    let mut admitted = hammer(&nodes, begin, Duration::from_secs(4), rate).await;
    nodes.iter().for_each(|(path, _)| path.cut(true));
    admitted.extend(hammer(&nodes, begin, Duration::from_millis(1500), rate).await);
    for (path, _) in &nodes {
        path.cut(false);
        admitted.extend(hammer(&nodes, begin, apart, rate).await);
    }
    admitted.extend(hammer(&nodes, begin, Duration::from_secs(5), rate).await);
    let excess = BOUND.excess(&admitted);
    let most = 100 * begin.elapsed().as_secs() + BURST;
    let admitted = admitted.len() as u64;
    assert!(admitted >= most * 9 / 10, "only {admitted} of {most}: {more}, {rate}/s");
    excess
}

#[tokio::test(start_paused = true)]
async fn no_node_admits_what_others_have_admitted_and_not_charged_yet() {
    for apart in [0, 30, 100, 200].map(Duration::from_millis) {
        for rate in [400, 1600, 6000] {
            let strict = excess("", rate, apart).await;
            let leased = excess("sharing = 'leased'", rate, apart).await;
            eprintln!("{apart:?} apart at {rate}/s: {strict} strict, {leased} leased");
            // What the others had admitted since each last heard of it.
            assert!(strict <= 4, "{strict} too many at {rate}/s, {apart:?} apart");
            assert!(leased <= 10, "{leased} too many at {rate}/s, {apart:?} apart");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_admits_its_share_for_a_second_after_redis_is_back_and_then_all() {
    let redis = Fake::new();
    let nodes = nodes(&redis, "");
    let (path, node) = &nodes[0];
    path.cut(true);
    assert_eq!(passes(node, "l", "alice", 100).await, 50);
    path.cut(false);
    assert_eq!(passes(node, "l", "alice", 100).await, 0);
    assert_eq!(passes(node, "l", "bob", 100).await, 50, "others may have admitted some as well");
    let (_, other) = &nodes[1];
    assert_eq!(passes(other, "l", "bob", 200).await, 150, "where nothing was missed, all of it");
    sleep(Duration::from_millis(1000)).await;
    assert_eq!(passes(node, "l", "alice", 200).await, 200 - 50 + 50);
}

#[tokio::test(start_paused = true)]
async fn what_redis_does_not_answer_again_is_spent_out_of_a_share_once() {
    let redis = Fake::new();
    let nodes = nodes(&redis, "");
    let (path, node) = &nodes[0];
    path.cut(true);
    assert_eq!(passes(node, "l", "alice", 1).await, 1);
    path.cut(false);
    redis.hang();
    let calls = (0..100).map(|_| node.check_limit("l", &["alice"], 1));
    let outcomes = join_all(calls).await;
    let passed = outcomes.iter().filter(|outcome| outcome.as_ref().unwrap().is_allowed());
    assert_eq!(passed.count(), 49);
}

#[tokio::test(start_paused = true)]
async fn where_only_one_slot_was_away_the_others_are_decided_as_ever() {
    let redis = Fake::with_slots(2);
    let nodes = nodes(&redis, "");
    let (_, node) = &nodes[0];
    redis.set_slot_down(Some(0));
    let users: Vec<_> = (0..10).map(|user| user.to_string()).collect();
    let mut shares = Vec::new();
    for user in &users {
        shares.push(passes(node, "l", user, 60).await == 50);
    }
    redis.set_slot_down(None);
    assert!(shares.contains(&true) && shares.contains(&false));
    for (user, is_away) in users.iter().zip(shares) {
        let left = if is_away { 0 } else { 140 };
        assert_eq!(passes(node, "l", user, 300).await, left, "{user}");
    }
}
