use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use spillgate::algorithm::Word;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::source::{ROUND_TRIP, TestNode};
use crate::backend::BackendError;
use crate::effective_quota::EffectiveQuota;
use crate::lease::{LeaseSource, Spent};
use crate::{State, Terms};

/// Calls that a caller makes one after the other; how many are allowed.
async fn calls(node: &TestNode, count: u64, gap: Duration) -> u64 {
    let mut allowed = 0;
    for _ in 0..count {
        allowed += u64::from(node.call(0, 1).await);
        sleep(gap).await;
    }
    allowed
}

#[tokio::test(start_paused = true)]
async fn a_busy_caller_with_quota_to_spare_seldom_needs_redis_and_soon_never_waits() {
    let node = TestNode::new("100_000/s");
    assert_eq!(calls(&node, 1000, Duration::from_millis(1)).await, 1000);
    let asked = node.calls();
    assert!(asked < 40, "{asked} calls to begin with");
    for call in 0..10_000 {
        // Nothing to wait for: the next slice is there before the last is used up.
        let spent = node.leases.spend(node.id(0), &node.effective, 1, node.source.local());
        assert!(matches!(spent, Spent::Allowed(_)));
        if call % 10 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    assert!(node.calls() - asked < 40, "{} calls for a second", node.calls() - asked);
}

#[tokio::test(start_paused = true)]
async fn callers_who_come_seldom_cost_one_call_each_time_and_hold_nothing() {
    let node = TestNode::new("1/s burst 1000");
    for caller in 0..50 {
        assert!(node.call(caller, 3).await);
        assert_eq!(node.stored(caller), 997);
    }
    sleep(Duration::from_secs(1)).await;
    assert!(node.call(0, 3).await);
    assert_eq!(node.calls(), 51);
}

#[tokio::test(start_paused = true)]
async fn calls_at_the_same_time_wait_for_one_take() {
    let node = Arc::new(TestNode::new("10_000/s"));
    let mut tasks = JoinSet::new();
    for _ in 0..500 {
        let node = Arc::clone(&node);
        tasks.spawn(async move { node.call(0, 1).await });
    }
    assert!(tasks.join_all().await.into_iter().all(|is_allowed| is_allowed));
    assert!(node.calls() <= 5, "{} calls, of which three are without a lease", node.calls());
}

#[tokio::test(start_paused = true)]
async fn what_is_idle_is_given_back_whole_and_the_caller_forgotten() {
    let node = TestNode::new("10/s burst 100_000");
    let allowed = calls(&node, 100, Duration::from_millis(1)).await;
    sleep(Duration::from_millis(400)).await;
    // What was spent has partly been refilled meanwhile, but no more than that.
    assert!(node.stored(0) >= 100_000 - allowed);
    let stats = node.leases.stats();
    assert_eq!((stats.callers, stats.given_back, stats.lost), (1, 1, 0));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(node.leases.stats().callers, 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_gives_everything_back_and_holds_nothing_from_then_on() {
    let node = TestNode::new("10/s burst 1000");
    for caller in 0..200 {
        for _ in 0..7 {
            assert!(node.call(caller, 1).await);
        }
    }
    assert!((0..200).any(|caller| node.stored(caller) < 993));
    node.leases.shutdown().await;
    for caller in 0..200 {
        assert!(node.stored(caller) >= 993, "caller {caller} has {}", node.stored(caller));
    }
    assert_eq!(node.try_call(0, 1).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_what_is_being_given_back_already() {
    let node = TestNode::new("1/s burst 1000");
    calls(&node, 20, Duration::from_micros(1)).await;
    let asked = node.calls();
    while node.calls() == asked {
        sleep(ROUND_TRIP / 10).await;
    }
    assert!(node.stored(0) < 980, "it is under way");
    node.leases.shutdown().await;
    assert_eq!(node.stored(0), 980);
    assert_eq!(node.leases.stats().lost_tokens, 0);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_taken_or_given_back_is_counted_if_nobody_says() {
    let node = TestNode::new("1/s burst 1000");
    calls(&node, 20, Duration::from_micros(1)).await;
    let held = 980 - node.stored(0);
    node.source.is_mute.store(true, Ordering::Relaxed);
    sleep(Duration::from_millis(400)).await;
    assert_eq!(node.leases.stats().lost_tokens, held);
    assert!(node.try_call(0, 7).await.is_err());
    let counted = node.leases.stats().lost_tokens;
    assert!(counted >= held + 7, "{counted} of {held}");
    // What is certainly not sent is not lost.
    node.source.is_mute.store(false, Ordering::Relaxed);
    node.source.is_down.store(true, Ordering::Relaxed);
    assert!(node.try_call(0, 7).await.is_err());
    assert_eq!(node.leases.stats().lost_tokens, counted);
}

#[tokio::test(start_paused = true)]
async fn what_redis_cannot_take_back_is_counted_when_it_can_no_longer_be_spent() {
    let node = TestNode::new("10/s burst 1000");
    calls(&node, 20, Duration::from_micros(1)).await;
    let held = 980 - node.stored(0);
    // Another node takes another quota there.
    let terms = Terms { quota: "1/s burst 1000".parse().unwrap(), ..node.effective.terms };
    let word = node.source.model.state(&TestNode::name(0)).unwrap().word;
    node.source.model.set_state(TestNode::name(0), Some(State::new(terms, word)));
    sleep(Duration::from_secs(3)).await;
    let stats = node.leases.stats();
    assert_eq!((stats.callers, stats.given_back, stats.lost_tokens), (0, 0, held));
}

#[tokio::test(start_paused = true)]
async fn a_node_holds_no_more_than_its_share_of_half_the_burst() {
    let node = TestNode::new("1/s burst 16_000");
    node.source.nodes.store(8, Ordering::Relaxed);
    let mut spent = 0;
    // As fast as can be, so that the node wants as much as it can get. A token a second is
    // refilled, which is next to nothing.
    for _ in 0..15_000 {
        spent += u64::from(node.call(0, 1).await);
        let held = 16_000 - node.stored(0) - spent;
        assert!(held <= 1000, "{held} are held after {spent}");
        tokio::task::yield_now().await;
    }
    assert!(spent >= 14_000, "{spent}");
}

#[tokio::test(start_paused = true)]
async fn a_call_for_more_than_may_be_held_is_decided_by_redis() {
    let node = TestNode::new("1/s burst 100");
    assert!(node.call(0, 100).await);
    assert!(!node.call(0, 1).await);
    assert!(!node.call(1, 101).await);
}

#[tokio::test(start_paused = true)]
async fn small_quotas_and_fleets_of_unknown_size_are_not_leased() {
    let node = TestNode::new("15/s");
    assert_eq!(node.try_call(0, 1).await, Ok(None));
    let node = TestNode::new("1000/s");
    node.source.nodes.store(0, Ordering::Relaxed);
    assert_eq!(node.try_call(0, 1).await, Ok(None));
    assert_eq!(node.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_is_refused_hardly_costs_a_call() {
    let node = Arc::new(TestNode::new("1 per 10 s burst 20"));
    for _ in 0..20 {
        assert!(node.call(0, 1).await);
    }
    let asked = node.calls();
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let node = Arc::clone(&node);
        tasks.spawn(async move { calls(&node, 5000, Duration::from_millis(1)).await });
    }
    let allowed: u64 = tasks.join_all().await.into_iter().sum();
    assert_eq!(allowed, 0);
    let asked = node.calls() - asked;
    assert!(asked <= 6, "{asked} calls in five seconds");
}

#[tokio::test(start_paused = true)]
async fn what_is_held_serves_while_redis_is_down() {
    let node = TestNode::new("100/s burst 10_000");
    calls(&node, 200, Duration::from_millis(1)).await;
    node.source.is_down.store(true, Ordering::Relaxed);
    assert!(node.call(0, 1).await);
    let mut served = 0;
    let error: BackendError = loop {
        match node.try_call(0, 1).await {
            Ok(_) => served += 1,
            Err(error) => break error,
        }
    };
    assert!(served > 10, "{served}");
    assert_eq!(error.to_string(), "it is down");
    node.source.is_down.store(false, Ordering::Relaxed);
    assert!(node.call(0, 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_lease_follows_the_terms_that_redis_has() {
    let node = TestNode::new("1000/s");
    let quota = "1/s burst 50".parse().unwrap();
    let terms = Terms { quota, is_override: true, ..node.effective.terms };
    let state = State::new(terms, Word::from_bits(0));
    node.source.model.set_state(TestNode::name(0), Some(state));
    let allowed = calls(&node, 100, Duration::from_micros(1)).await;
    assert_eq!(allowed, 50);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back_when_the_policy_has_other_terms() {
    let mut node = TestNode::new("10/s burst 1000");
    calls(&node, 20, Duration::from_micros(1)).await;
    assert!(node.stored(0) < 975);
    let terms = Terms { quota: "10/s burst 2000".parse().unwrap(), ..node.effective.terms };
    node.effective = EffectiveQuota::of(terms).unwrap();
    let asked = node.effective;
    let local = node.source.local();
    assert!(matches!(node.leases.spend(node.id(0), &asked, 1, local), Spent::Empty));
    assert!(node.try_call(0, 1).await.is_ok());
    sleep(Duration::from_millis(10)).await;
    assert_eq!(node.leases.stats().given_back, 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_table_gives_back_what_has_been_idle_longest() {
    let node = TestNode::with_room("10/s burst 1000", 64);
    for caller in 0..=255 {
        for _ in 0..7 {
            assert!(node.call(caller, 1).await);
        }
    }
    sleep(10 * ROUND_TRIP).await;
    let stats = node.leases.stats();
    assert!(stats.callers <= 64, "{stats:?}");
    assert!(stats.given_back > 100, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_for_a_caller_who_is_forgotten_meanwhile_is_given_back() {
    let node = Arc::new(TestNode::new("10/s burst 1000"));
    calls(&node, 5, Duration::from_micros(1)).await;
    let held = node.stored(0);
    node.leases.forget(node.id(0));
    let task = tokio::spawn({
        let node = Arc::clone(&node);
        async move { node.call(0, 1).await }
    });
    sleep(ROUND_TRIP / 4).await;
    node.leases.forget(node.id(0));
    assert!(task.await.unwrap());
    sleep(10 * ROUND_TRIP).await;
    assert_eq!(node.stored(0), held - 1, "what was held before is lost");
}

#[tokio::test(start_paused = true)]
async fn a_cost_is_taken_back_by_its_decision() {
    let node = TestNode::new("10/s burst 1000");
    calls(&node, 20, Duration::from_micros(1)).await;
    let local = node.source.local();
    let spend = || node.leases.spend(node.id(0), &node.effective, 2, local);
    let (Spent::Allowed(first), Spent::Allowed(second)) = (spend(), spend()) else {
        panic!("both are allowed");
    };
    let [undone, undoable] = [first, second].map(|decision| decision.spent().unwrap());
    assert!(!node.leases.undo(node.id(0), &undone));
    assert!(node.leases.undo(node.id(0), &undoable));
    let Spent::Allowed(again) = spend() else { panic!("it is allowed") };
    assert_eq!(again.word(), second.word());
}

#[tokio::test(start_paused = true)]
async fn a_caller_in_another_tier_does_not_spend_the_slices_of_the_one_before() {
    let mut node = TestNode::new("10/s burst 1000");
    calls(&node, 20, Duration::from_micros(1)).await;
    let local = node.source.local();
    let Spent::Allowed(spent) = node.leases.spend(node.id(0), &node.effective, 1, local) else {
        panic!("it is allowed");
    };
    // Slots ten times as long.
    let slower = Terms::new(node.effective.terms.kind, "1/s burst 100".parse().unwrap());
    node.effective = EffectiveQuota::of(slower).unwrap();
    let peeked = node.leases.peek(node.id(0), &node.effective, 1, local);
    assert!(peeked.is_none());
    assert!(matches!(node.leases.spend(node.id(0), &node.effective, 1, local), Spent::Empty));
    assert!(node.try_call(0, 1).await.is_ok());
    sleep(Duration::from_millis(10)).await;
    assert_eq!(node.leases.stats().given_back, 1);
    assert!(!node.leases.undo(node.id(0), &spent.spent().unwrap()));
}
