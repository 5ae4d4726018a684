//! What is known only afterwards.

use spillgate_testing::CheckLimit;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use spillgate::AlgorithmKind;
use spillgate::algorithm::Word;
use spillgate_policy::{LimitCheck, Limits, Policy, Receipt, RequestView, Terms};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::fake::{Fake, Node, left, passes};

const POLICY: &str = "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/h'";

#[tokio::test(start_paused = true)]
async fn what_one_node_reserves_another_settles() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    let _ = node.check_limit("l", &["alice"], 6).await.unwrap();
    other.settle_limit("l", &["alice"], 6, 2).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 8);
    other.settle_limit("l", &["alice"], 2, 12).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 0);
    assert_eq!(passes(&node, "l", "alice", 1).await, 0);
}

#[tokio::test(start_paused = true)]
async fn settling_is_one_round_trip() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    node.settle_limit("l", &["alice"], 3, 1).await.unwrap();
    assert_eq!((redis.runs(), redis.exchanges()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_the_end_of_a_queue_leaves_no_gap() {
    let redis = Fake::new();
    let node = redis.node(
        "[[limit]]\nname = 'l'\nper = 'global'\nquota = '1/s burst 5'\n\
         algorithm = 'leaky-shaper'",
    );
    let (parts, ()) = Request::new(()).into_parts();
    let request = RequestView::from_parts(&parts, None);
    let _first = node.decide(&request).await.unwrap();
    let second = node.decide(&request).await.unwrap();
    assert_eq!(second.wait(), Duration::from_secs(1));
    node.cancel(second);
    sleep(Duration::from_millis(1)).await;
    let third = node.decide(&request).await.unwrap();
    assert_eq!(third.wait(), Duration::from_millis(999));
    // In the middle of it, the place stays taken.
    let _fourth = node.decide(&request).await.unwrap();
    node.cancel(third);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(node.decide(&request).await.unwrap().wait(), Duration::from_millis(2998));
}

#[tokio::test(start_paused = true)]
async fn what_redis_may_have_given_back_is_not_given_back_in_an_outage_as_well() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    redis.set_down(true);
    // All of this node's share.
    let _ = node.check_limit("l", &["alice"], 5).await.unwrap();
    node.settle_limit("l", &["alice"], 5, 3).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 2);
    redis.hang();
    node.settle_limit("l", &["alice"], 3, 1).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 2);
    node.settle_limit("l", &["alice"], 1, 2).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 1);
}

/// Spends in advance, and is not settled yet.
async fn reserve(node: &Node, cost: u64) -> Option<Receipt> {
    let check = LimitCheck { limit: "l", values: &["alice"], cost };
    node.decide(&Limits(&[check])).await.unwrap().receipt()
}

#[tokio::test(start_paused = true)]
async fn what_has_been_refilled_is_not_given_back() {
    for (kind, sharing) in AlgorithmKind::ALL
        .map(|kind| (kind, "strict"))
        .into_iter()
        .chain([(AlgorithmKind::TokenBucket, "leased")])
    {
        let redis = Fake::new();
        let policy = format!(
            "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '40/min'\nalgorithm = '{kind}'\n\
             sharing = '{sharing}'"
        );
        let node = redis.node(&policy);
        let mut open = Vec::new();
        for minute in 0..20 {
            if minute > 0 {
                sleep(Duration::from_secs(60)).await;
            }
            open.extend(reserve(&node, 40).await);
        }
        // A sliding window never lets all of it pass again.
        assert!(open.len() == 20 || kind == AlgorithmKind::SlidingWindow, "{kind}");
        for receipt in open {
            let settled = node.settle_actual(receipt, 0).await.unwrap().settled.unwrap();
            assert_eq!(settled.uncharged, 0, "{kind}");
        }
        let passed = passes(&node, "l", "alice", 200).await;
        assert!(passed <= 40, "{kind}, {sharing}: {passed}");
        assert!(passed >= 39 || kind == AlgorithmKind::SlidingWindow, "{kind}: {passed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_debt_has_a_bound_and_what_is_beyond_it_is_told() {
    for (bound, most) in [("", 10 + 240), ("max-debt = 5", 15), ("max-debt = 0", 10)] {
        let redis = Fake::new();
        let node = redis.node(&format!("{POLICY}\n{bound}"));
        let settled = node.settle_limit("l", &["alice"], 0, u64::MAX).await.unwrap();
        assert_eq!((settled.uncharged, settled.left.remaining()), (u64::MAX - most, 0), "{bound}");
        // Nothing more, and nothing forgiven.
        let settled = node.settle_limit("l", &["alice"], 3, 10).await.unwrap();
        assert_eq!(settled.uncharged, 7, "{bound}");
        sleep(Duration::from_secs(360 * (most - 9))).await;
        assert_eq!(passes(&node, "l", "alice", 9).await, 1, "{bound}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_debt_outlives_a_new_policy() {
    let redis = Fake::new();
    let policy = |quota: &str| {
        let policy = POLICY.replace("10/h", quota);
        Policy::from_toml(&format!("{policy}\ncapacity = 100")).unwrap()
    };
    let node = redis.node("limit = []");
    let _ = node.replace(policy("1000/min")).unwrap();
    let named = Arc::new(Mutex::new(None));
    let name = Arc::clone(&named);
    redis.before_run(move |_, entries| *name.lock().unwrap() = Some(entries[0].name));
    node.settle_limit("l", &["alice"], 0, 61_000).await.unwrap();
    let name = named.lock().unwrap().unwrap();
    let owed = redis.model().state(&name).unwrap();

    let _ = node.replace(policy("1000/min")).unwrap();
    assert_eq!(passes(&node, "l", "alice", 1).await, 0);
    assert_eq!(redis.model().state(&name), Some(owed), "not a bit is another");

    let _ = node.replace(policy("2000/min")).unwrap();
    let wait = |tokens: u64| Some(Duration::from_millis(30 * tokens));
    let peek = || async { node.peek_limit("l", &["alice"], 1).await.unwrap().retry_after() };
    assert_eq!(peek().await, wait(61_000 - 1999));
    // Also if it is written so.
    let quota = "2000/min".parse().unwrap();
    node.set_override("l", &["alice"], quota, Terms::permanent()).await.unwrap();
    assert_eq!(peek().await, wait(61_000 - 1999));
}

#[tokio::test(start_paused = true)]
async fn a_spend_by_another_quota_is_settled_although_others_spend() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    let receipt = reserve(&node, 6).await.unwrap();
    let larger = Policy::from_toml(&POLICY.replace("10/h", "20/h")).unwrap();
    let _ = node.replace(larger).unwrap();
    assert_eq!(passes(&node, "l", "alice", 1).await, 1);
    // Three times somebody is faster.
    let mut times = 3;
    let states = redis.clone();
    redis.before_run(move |model, entries| {
        let name = entries[0].name;
        let Some(mut state) = model.state(&name).filter(|_| times > 0) else { return };
        times -= 1;
        let later = states.clone();
        tokio::spawn(async move {
            // One more token, which comes back in three minutes.
            state.word = Word::from_bits(state.word.to_bits() + 180_000_000_000);
            later.model().set_state(name, Some(state));
        });
    });
    redis.set_delay(Duration::from_millis(1));
    let before = redis.exchanges();
    let settled = node.settle_actual(receipt, 1).await.unwrap().settled.unwrap();
    assert_eq!(redis.exchanges() - before, 4);
    assert_eq!(settled.left.remaining(), 20 - 1 - 1 - 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_under_an_override_is_given_back_when_that_is_gone() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    node.set_override("l", &["alice"], "20/h".parse().unwrap(), Terms::permanent()).await.unwrap();
    let receipt = reserve(&node, 6).await.unwrap();
    node.remove_override("l", &["alice"]).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 4);
    let settled = node.settle_actual(receipt, 2).await.unwrap().settled.unwrap();
    assert_eq!(settled.left.remaining(), 8);
    assert_eq!(left(&node, "l", "alice").await, 8);
}

const LEASED: &str = "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\n\
                      quota = '1/h burst 2000'\nsharing = 'leased'";

/// Reserves on one node, and settles on another.
async fn reserve_and_settle(node: &Node, other: &Node, id: u128, [cost, actual]: [u64; 2]) {
    let receipt = reserve(node, cost).await.unwrap_or_else(|| panic!("{id} is denied"));
    assert!(node.deposit(&receipt, id, Duration::from_secs(60)).await.unwrap());
    sleep(Duration::from_millis(1)).await;
    assert!(other.settle_deposit(id, actual).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_of_what_one_node_reserves_and_another_settles_under_a_lease() {
    for at_once in [1_u32, 16] {
        let redis = Fake::new();
        redis.set_delay(Duration::from_micros(300));
        let nodes = Arc::new([redis.node(LEASED), redis.node(LEASED)]);
        let mut tasks = JoinSet::new();
        for task in 0..at_once {
            let nodes = Arc::clone(&nodes);
            tasks.spawn(async move {
                for pair in 0..10_000 / at_once {
                    // All that one node reserves the other settles.
                    let id = u128::from(pair * at_once + task);
                    // Of a hundred, one costs something in the end.
                    let actual = u64::from(id.is_multiple_of(100));
                    reserve_and_settle(&nodes[0], &nodes[1], id, [3, actual]).await;
                }
            });
        }
        tasks.join_all().await;
        sleep(Duration::from_secs(3)).await;
        assert_eq!(left(&nodes[1], "l", "alice").await, 1900, "{at_once} at a time");
        // What the node held that reserved has been given back, and can be had by the other.
        assert_eq!(passes(&nodes[1], "l", "alice", 2000).await, 1900, "{at_once} at a time");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_where_it_was_reserved_goes_back_to_the_lease() {
    let redis = Fake::new();
    let node = redis.node(LEASED);
    // So that there is a lease.
    assert_eq!(passes(&node, "l", "alice", 20).await, 20);
    let mut asked = 0;
    for _ in 0..100 {
        let receipt = reserve(&node, 2).await.unwrap();
        let before = redis.runs();
        let settled = node.settle_actual(receipt, 1).await.unwrap().settled.unwrap();
        assert_eq!(settled.uncharged, 0);
        asked += redis.runs() - before;
    }
    assert_eq!(asked, 0);
    node.store().shutdown().await;
    assert_eq!(left(&node, "l", "alice").await, 2000 - 20 - 100);
}
