//! Limits in different slots are spent together or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spillgate::Quota;
use spillgate_redis::Settings;
use spillgate_redis::backend::{Entry, Op};
use tokio::task::JoinSet;

use super::fake::{Fake, Node, check_all, left};
use spillgate_policy::{Policy, Terms};

const THREE: &str = "
    [[limit]]
    name = 'a'
    by-name = true
    per = 'user'
    quota = '100/h'

    [[limit]]
    name = 'b'
    by-name = true
    per = 'user'
    quota = '50/h'

    [[limit]]
    name = 'c'
    by-name = true
    per = 'user'
    quota = '10/h'

    [[limit]]
    name = 'shadow'
    by-name = true
    per = 'user'
    quota = '5/h'
    mode = 'shadow'
";

async fn all_left(node: &Node, key: &str) -> [u64; 3] {
    [left(node, "a", key).await, left(node, "b", key).await, left(node, "c", key).await]
}

#[tokio::test(start_paused = true)]
async fn in_one_slot_all_is_decided_in_one_round_trip() {
    let redis = Fake::new();
    let node = redis.node(THREE);
    let outcome = check_all(&node, &["a", "b", "c", "shadow"], "alice").await.unwrap();
    assert!(outcome.is_allowed());
    assert_eq!(outcome.limits().count(), 4);
    assert_eq!(redis.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_denied_in_one_slot_is_taken_back_in_others() {
    let redis = Fake::with_slots(200);
    let node = redis.node(THREE);
    // Wherever a caller's names fall.
    for caller in 0..20 {
        let caller = format!("caller-{caller}");
        let mut passed = 0;
        for _ in 0..15 {
            let outcome = check_all(&node, &["a", "b", "c"], &caller).await.unwrap();
            passed += usize::from(outcome.is_allowed());
        }
        assert_eq!(passed, 10);
        assert_eq!(all_left(&node, &caller).await, [90, 40, 0]);
    }
    let stats = node.store().stats();
    assert!(stats.undone > 0);
    assert_eq!(stats.kept_spends, 0);
}

#[tokio::test(start_paused = true)]
async fn limits_in_shadow_spend_only_if_all_others_pass_and_never_deny() {
    let redis = Fake::with_slots(200);
    let node = redis.node(THREE);
    for caller in 0..20 {
        let caller = format!("caller-{caller}");
        for call in 0..12 {
            let outcome = check_all(&node, &["a", "c", "shadow"], &caller).await.unwrap();
            assert_eq!(outcome.is_allowed(), call < 10);
            assert_eq!(outcome.limits().count(), if call < 10 { 3 } else { 2 });
        }
        assert_eq!(left(&node, "shadow", &caller).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_slot_moves_limits_are_decided_one_by_one_and_all_or_none() {
    let redis = Fake::new();
    redis.set_scattered(true);
    let node = redis.node(THREE);
    for call in 0..15 {
        // Before the last enforced limit, which denies, and after it.
        let outcome = check_all(&node, &["a", "shadow", "b", "c"], "alice").await.unwrap();
        assert_eq!(outcome.is_allowed(), call < 10);
        assert_eq!(outcome.limits().count(), if call < 10 { 4 } else { 3 });
    }
    assert_eq!(all_left(&node, "alice").await, [90, 40, 0]);
    assert_eq!(left(&node, "shadow", "alice").await, 0);
    let shadow = check_all(&node, &["shadow", "shadow"], "bob").await.unwrap();
    assert!(shadow.is_allowed());
    assert_eq!(left(&node, "shadow", "bob").await, 3);
    assert_eq!(node.store().stats().kept_spends, 0);
}

#[tokio::test(start_paused = true)]
async fn a_spend_on_which_others_have_spent_stays_and_nobody_gets_more_for_it() {
    let redis = Fake::with_slots(200);
    let node = redis.node(THREE);
    let alice = ["a", "c"];
    for _ in 0..10 {
        assert!(check_all(&node, &alice, "alice").await.unwrap().is_allowed());
    }
    // Between the two calls of one that is denied, another node spends on the first limit.
    let calls = AtomicUsize::new(0);
    let first: Arc<std::sync::Mutex<Option<Entry>>> = Arc::default();
    redis.before_run(move |model, entries| {
        let mut first = first.lock().unwrap();
        if calls.fetch_add(1, Ordering::SeqCst) == 1 {
            let _ = model.run_now(&[first.clone().unwrap()]).unwrap();
        }
        first.get_or_insert_with(|| entries[0].clone());
    });
    assert!(!check_all(&node, &alice, "alice").await.unwrap().is_allowed());
    assert_eq!(node.store().stats().kept_spends, 1);
    assert_eq!(left(&node, "a", "alice").await, 88);
}

#[tokio::test(start_paused = true)]
async fn one_caller_twice_in_a_call_pays_twice_or_not_at_all() {
    let redis = Fake::new();
    let node = redis.node(THREE);
    let mut passed = 0;
    for _ in 0..8 {
        let twice = check_all(&node, &["c", "c"], "alice").await.unwrap();
        passed += usize::from(twice.is_allowed());
    }
    assert_eq!((passed, left(&node, "c", "alice").await), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_call_is_spent_while_terms_are_others() {
    let redis = Fake::new();
    let node = redis.node(THREE);
    assert!(check_all(&node, &["a", "b"], "alice").await.unwrap().is_allowed());
    let quota: Quota = "1/h".parse().unwrap();
    let other = redis.node(THREE);
    other.set_override("b", &["alice"], quota, Terms::permanent()).await.unwrap();
    assert!(!check_all(&node, &["a", "b"], "alice").await.unwrap().is_allowed());
    assert_eq!((left(&node, "a", "alice").await, left(&node, "b", "alice").await), (99, 0));
}

/// A policy whose second limit has another quota.
fn with_quota_of_b(quota: &str) -> Policy {
    Policy::from_toml(&THREE.replace("'50/h'", &format!("'{quota}'"))).unwrap()
}

#[tokio::test(start_paused = true)]
async fn where_one_quota_has_moved_all_are_spent_or_none() {
    for slots in [1, 200] {
        let redis = Fake::with_slots(slots);
        let settings = Settings::default().nodes(2.try_into().unwrap()).remembered(0);
        let node = redis.node_with(THREE, &settings);
        let all = ["a", "b", "c", "shadow"];
        for _ in 0..3 {
            assert!(check_all(&node, &all, "alice").await.unwrap().is_allowed());
        }
        let _ = node.replace(with_quota_of_b("9/h")).unwrap();
        for _ in 0..4 {
            assert!(check_all(&node, &all, "alice").await.unwrap().is_allowed());
        }
        assert_eq!(all_left(&node, "alice").await, [93, 2, 3], "{slots}");
        // The one that has not moved denies, and then the one that has.
        for _ in 0..2 {
            assert!(
                !check_all(&node, &["a", "b", "c", "c", "c", "c"], "alice")
                    .await
                    .unwrap()
                    .is_allowed()
            );
            assert_eq!(all_left(&node, "alice").await, [93, 2, 3], "{slots}");
        }
        for _ in 0..2 {
            assert!(
                !check_all(&node, &["a", "b", "c", "b", "b"], "alice").await.unwrap().is_allowed()
            );
            assert_eq!(all_left(&node, "alice").await, [93, 2, 3], "{slots}");
        }
        // One caller twice, by a quota that has moved.
        assert!(check_all(&node, &["b", "a", "b"], "alice").await.unwrap().is_allowed());
        assert_eq!(all_left(&node, "alice").await, [92, 0, 3], "{slots}");
        assert_eq!(node.store().stats().kept_spends, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_on_several_nodes_are_decided_while_a_quota_moves() {
    let redis = Fake::new();
    redis.set_delay(Duration::from_micros(200));
    let nodes: Vec<_> = (0..4).map(|_| Arc::new(redis.node(THREE))).collect();
    assert!(check_all(&nodes[0], &["a", "b"], "alice").await.unwrap().is_allowed());
    for node in &nodes {
        let _ = node.replace(with_quota_of_b("90/h")).unwrap();
    }
    let mut calls = JoinSet::new();
    for call in 0..400 {
        let node = Arc::clone(&nodes[call % nodes.len()]);
        calls.spawn(
            async move { check_all(&node, &["a", "b"], "alice").await.unwrap().is_allowed() },
        );
    }
    let passed = calls.join_all().await.into_iter().filter(|is_allowed| *is_allowed).count();
    // What could not be undone since others had spent meanwhile stays spent.
    let kept: u64 = nodes.iter().map(|node| node.store().stats().kept_spends).sum();
    let [a, b, _] = all_left(&nodes[0], "alice").await;
    assert!(passed <= 89 && passed as u64 + kept >= 89, "{passed}, {kept}");
    assert_eq!((100 - a, 90 - b), (passed as u64 + 1 + kept, passed as u64 + 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_again_limit_by_limit_pays_once_by_a_quota_that_has_moved() {
    let redis = Fake::new();
    let node = redis.node(THREE);
    let all = ["b", "a", "c"];
    assert!(check_all(&node, &all, "alice").await.unwrap().is_allowed());
    let _ = node.replace(with_quota_of_b("90/h")).unwrap();
    // The slot begins to move once all was read: what has moved is spent by then.
    let (runs, moving) = (AtomicUsize::new(0), redis.clone());
    redis.before_run(move |_, _| {
        if runs.fetch_add(1, Ordering::SeqCst) == 1 {
            moving.set_scattered(true);
        }
    });
    assert!(check_all(&node, &all, "alice").await.unwrap().is_allowed());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(all_left(&node, "alice").await, [98, 88, 8]);
    let stats = node.store().stats();
    assert_eq!((stats.undone, stats.kept_spends), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn one_caller_twice_beside_a_quota_that_has_moved_is_denied_at_once() {
    let redis = Fake::new();
    let node = redis.node(THREE);
    for _ in 0..8 {
        assert!(check_all(&node, &["b", "c"], "alice").await.unwrap().is_allowed());
    }
    let _ = node.replace(with_quota_of_b("90/h")).unwrap();
    // Once there was room for both, another node takes one.
    let runs = AtomicUsize::new(0);
    redis.before_run(move |model, entries| {
        if runs.fetch_add(1, Ordering::SeqCst) == 1 {
            let op = Op::Spend { cost: 1, is_shadow: false };
            let _ = model.run_now(&[Entry { op, ..entries[1].clone() }]).unwrap();
        }
    });
    let before = redis.runs();
    assert!(!check_all(&node, &["b", "c", "c"], "alice").await.unwrap().is_allowed());
    assert_eq!(redis.runs() - before, 2);
    assert_eq!(all_left(&node, "alice").await, [100, 82, 1]);
}
