//! What is known only afterwards.

use std::time::Duration;

use http::Request;
use tollgate_policy::Request as Asked;

use super::engine::{Fake, left, passes};

const POLICY: &str = "[[limit]]\nname = 'l'\nper = 'user'\nquota = '10/h'";

#[tokio::test(start_paused = true)]
async fn what_one_node_reserves_another_settles() {
    let engine = Fake::new();
    let (node, other) = (engine.node(POLICY), engine.node(POLICY));
    let _ = node.check_limit("l", &["alice"], 6).await.unwrap();
    other.settle_limit("l", &["alice"], 6, 2).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 8);
    other.settle_limit("l", &["alice"], 2, 12).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 0);
    assert_eq!(passes(&node, "l", "alice", 1).await, 0);
}

#[tokio::test(start_paused = true)]
async fn settling_is_one_round_trip() {
    let engine = Fake::new();
    let node = engine.node(POLICY);
    node.settle_limit("l", &["alice"], 3, 1).await.unwrap();
    assert_eq!((engine.runs(), engine.exchanges()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_the_end_of_a_queue_leaves_no_gap() {
    let engine = Fake::new();
    let node = engine.node(
        "[[limit]]\nname = 'l'\nper = 'global'\nquota = '1/s burst 5'\n\
         algorithm = 'leaky-shaper'",
    );
    let (parts, ()) = Request::new(()).into_parts();
    let request = Asked::from_parts(&parts, None);
    let _first = node.check(&request).await.unwrap();
    let second = node.check(&request).await.unwrap();
    assert_eq!(second.wait(), Duration::from_secs(1));
    node.cancel(&second);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let third = node.check(&request).await.unwrap();
    assert_eq!(third.wait(), Duration::from_millis(999));
    // In the middle of it, the place stays taken.
    let _fourth = node.check(&request).await.unwrap();
    node.cancel(&third);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(node.check(&request).await.unwrap().wait(), Duration::from_millis(2998));
}

#[tokio::test(start_paused = true)]
async fn what_an_engine_may_have_given_back_is_not_given_back_in_an_outage_as_well() {
    let engine = Fake::new();
    let node = engine.node(POLICY);
    engine.set_down(true);
    // All of this node's share.
    let _ = node.check_limit("l", &["alice"], 5).await.unwrap();
    node.settle_limit("l", &["alice"], 5, 3).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 2);
    engine.hang();
    node.settle_limit("l", &["alice"], 3, 1).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 2);
    node.settle_limit("l", &["alice"], 1, 2).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 1);
}
