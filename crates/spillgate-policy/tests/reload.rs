//! Changing a gate while it decides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{TestGate, gate, gate_of, get};
use spillgate_policy::{Answer, Gate, Limit, ListKind, Outcome, Policy, Terms, Tier};

fn policy(limits: impl IntoIterator<Item = Limit>) -> Policy {
    limits
        .into_iter()
        .fold(Policy::builder(), spillgate_policy::PolicyBuilder::limit)
        .build()
        .unwrap()
}

/// How much a caller at 203.0.113.7 has left under a limit.
fn left(gate: &TestGate, limit: &str) -> u64 {
    let limits = get("203.0.113.7", "/").explained(gate).limits;
    let limit = limits.into_iter().find(|explained| explained.name == limit).unwrap();
    limit.state.unwrap().remaining
}

#[test]
fn what_was_spent_stays_spent_wherever_the_limit_is_still_there() {
    let (gate, _) = gate_of(policy([
        Limit::new("kept", "1/h burst 10"),
        Limit::new("gone", "1/h burst 50").per(["ip"]),
        Limit::new("changed", "60/min").per(["header:x-org"]),
    ]));
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 7), 7);
    let changed = Limit::new("changed", "60/min")
        .per(["header:x-org"])
        .algorithm(spillgate::AlgorithmKind::FixedWindow);
    let changes = gate
        .replace(policy([
            changed,
            Limit::new("new", "1/h burst 10").per(["ip"]),
            Limit::new("kept", "1/h burst 20").capacity(5),
        ]))
        .unwrap();
    assert_eq!(changes.added, ["new"]);
    assert_eq!(changes.removed, ["gone"]);
    assert_eq!(changes.restarted, ["changed"]);
    assert_eq!(left(&gate, "kept"), 13, "7 used stay 7 used");
    assert_eq!((left(&gate, "new"), left(&gate, "changed")), (10, 60));
}

#[test]
fn overrides_and_tiers_come_and_go_and_keep_what_was_spent() {
    let plain = || Limit::new("l", "1/h burst 10");
    let (gate, _) = gate_of(policy([plain()]));
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 4), 4);
    gate.replace(policy([plain().override_for("caller", "203.0.113.7", "1/h burst 30")])).unwrap();
    assert_eq!(left(&gate, "l"), 26);
    gate.replace(policy([plain()])).unwrap();
    assert_eq!(left(&gate, "l"), 6);
    let tier = Tier::new().callers(["ip:203.0.113.99"]).quota("l", "1/h burst 99");
    gate.replace(Policy::builder().limit(plain()).tier("gold", tier).build().unwrap()).unwrap();
    assert_eq!(left(&gate, "l"), 6);
}

#[tokio::test]
async fn what_was_changed_at_run_time_survives_a_new_policy() {
    let (gate, _) =
        gate("block = [\"198.51.100.1\"]\n[[limit]]\nname = \"l\"\nquota = \"burst 1\"");
    assert!(gate.list(ListKind::Block, "203.0.113.0/24", Terms::permanent()).await.unwrap());
    assert!(
        !gate.list(ListKind::Block, "203.0.113.0/24", Terms::permanent()).await.unwrap(),
        "it is there already"
    );
    assert!(gate.unlist(ListKind::Block, "198.51.100.1").await.unwrap());
    gate.list(ListKind::Allow, "key:friend", Terms::permanent()).await.unwrap();
    let quota = "burst 7".parse().unwrap();
    gate.set_override("l", &["192.0.2.1"], quota, Terms::permanent()).await.unwrap();
    for _ in 0..2 {
        let answer = |peer| get(peer, "/").through(&gate).answer();
        assert_eq!(answer("203.0.113.200"), Answer::Blocked);
        assert_ne!(answer("198.51.100.1"), Answer::Blocked);
        let decision = gate.peek_limit("l", &["192.0.2.1"], 1).await.unwrap();
        assert_eq!(decision.limit(), 7);
        let text = "block = [\"198.51.100.1\"]\n[[limit]]\nname = \"l\"\nquota = \"burst 2\"";
        gate.replace(Policy::from_toml(text).unwrap()).unwrap();
    }
    // Also if the policy has an override for the same caller.
    let with_override = || {
        let limit = Limit::new("l", "burst 2").override_for("caller", "192.0.2.1", "burst 99");
        policy([limit])
    };
    gate.replace(with_override()).unwrap();
    gate.set_override("l", &["192.0.2.1"], quota, Terms::permanent()).await.unwrap();
    gate.replace(with_override()).unwrap();
    assert_eq!(gate.peek_limit("l", &["192.0.2.1"], 1).await.unwrap().limit(), 7);
    let error = gate.list(ListKind::Block, "not-an-address", Terms::permanent()).await.unwrap_err();
    assert!(error.is_unknown(), "{error}");
    let error = gate.peek_limit("ll", &["192.0.2.1"], 1).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no limit \"ll\"; use one of l");
}

#[test]
fn under_load_no_request_is_lost_nobody_forgiven_and_nobody_punished() {
    const SPEND: usize = 20_000;
    const RELOADS: usize = 1_000;
    let policy = |generation: usize| {
        // The capacity changes every time, so that all words have to move.
        let limit = Limit::new("l", format!("burst {SPEND}")).capacity(50 + generation as u64 % 7);
        let other = Limit::new(format!("other-{}", generation % 3), "1000000/s");
        policy([limit, other])
    };
    let gate = Gate::new(policy(0)).unwrap();
    let callers: Vec<_> = (1..=4).map(|host| get(&format!("203.0.113.{host}"), "/")).collect();
    let rounds = AtomicUsize::new(0);
    let passed = std::thread::scope(|scope| {
        scope.spawn(|| {
            for generation in 1..=RELOADS {
                // Not faster than requests come: whoever asks would wait for ever.
                while rounds.load(Ordering::Relaxed) < generation * SPEND / RELOADS {
                    std::thread::yield_now();
                }
                gate.replace(policy(generation)).unwrap();
            }
        });
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut passed = vec![0; callers.len()];
                    for _ in 0..SPEND {
                        for (count, caller) in passed.iter_mut().zip(&callers) {
                            let outcome = gate
                                .try_decide(&caller.request(), |it| it.map(Outcome::take))
                                .unwrap()
                                .unwrap();
                            *count += usize::from(outcome.is_allowed());
                        }
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                    passed
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for caller in 0..callers.len() {
        let count: usize = passed.iter().map(|thread| thread[caller]).sum();
        assert_eq!(count, SPEND, "caller {caller} gets what it may, and not one more");
    }
}

#[test]
fn a_policy_that_cannot_be_kept_leaves_the_old_one_in_force() {
    let (gate, _) = gate_of(policy([Limit::new("l", "burst 5")]));
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 3), 3);
    // More memory than there is address space for in practice.
    let huge =
        (0..64).map(|n| Limit::new(format!("huge-{n}"), "1/s").capacity(u64::from(u32::MAX)));
    if let Err(error) = gate.replace(policy(huge)) {
        assert!(error.is_store(), "{error}");
        assert_eq!(left(&gate, "l"), 2);
    }
}

#[test]
fn a_limit_that_is_removed_by_mistake_and_put_back_forgives_nobody() {
    let limited =
        || policy([Limit::new("api", "1/min burst 10"), Limit::new("day", "50/day").per(["ip"])]);
    let (gate, clock) = gate_of(limited());
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 7), 7);
    let changes = gate.replace(policy([])).unwrap();
    assert_eq!(changes.removed, ["api", "day"]);
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 99), 99);
    // Another mistake, and another reload, change nothing.
    gate.replace(policy([Limit::new("apo", "9/min")])).unwrap();
    clock.advance(Duration::from_secs(120));
    gate.replace(limited()).unwrap();
    assert_eq!((left(&gate, "api"), left(&gate, "day")), (5, 43), "two are refilled");
    // Removed again for more than an hour: what is left of it is forgotten.
    gate.replace(policy([])).unwrap();
    clock.advance(Duration::from_secs(3601));
    gate.replace(limited()).unwrap();
    assert_eq!((left(&gate, "api"), left(&gate, "day")), (10, 50));
}

#[test]
fn a_limit_that_counts_otherwise_for_a_while_forgives_nobody() {
    let api = |kind| policy([Limit::new("api", "10/day").algorithm(kind)]);
    let (bucket, window) =
        (spillgate::AlgorithmKind::TokenBucket, spillgate::AlgorithmKind::FixedWindow);
    let (gate, _) = gate_of(api(bucket));
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 7), 7);
    gate.replace(api(window)).unwrap();
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 4), 4);
    gate.replace(api(bucket)).unwrap();
    assert_eq!(left(&gate, "api"), 3);
    gate.replace(api(window)).unwrap();
    assert_eq!(left(&gate, "api"), 6);
}

#[tokio::test]
async fn an_override_of_a_limit_that_comes_back_comes_back_with_it() {
    let api = || policy([Limit::new("api", "1/h burst 10")]);
    let (gate, _) = gate_of(api());
    gate.set_override("api", &["203.0.113.7"], "1/h burst 3".parse().unwrap(), Terms::permanent())
        .await
        .unwrap();
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 2), 2);
    gate.replace(policy([])).unwrap();
    gate.replace(api()).unwrap();
    let left = gate.peek_limit("api", &["203.0.113.7"], 0).await.unwrap();
    assert_eq!((left.limit(), left.remaining()), (3, 1));
}

#[test]
fn under_load_a_limit_that_is_removed_and_put_back_admits_its_quota_once() {
    const BURST: usize = 20_000;
    let limited = || policy([Limit::new("api", format!("1/day burst {BURST}"))]);
    let marked = || policy([Limit::new("other", "1000000/s").per(["ip"])]);
    let gate = Gate::new(limited()).unwrap();
    let (admitted, is_done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let call = get("203.0.113.7", "/");
                while is_done.load(Ordering::Relaxed) == 0 {
                    let outcome = gate
                        .try_decide(&call.request(), |it| it.map(Outcome::take))
                        .unwrap()
                        .unwrap();
                    let is_counted = outcome.limits().any(|limit| limit.name() == "api");
                    admitted.fetch_add(
                        usize::from(is_counted && outcome.is_allowed()),
                        Ordering::Relaxed,
                    );
                }
            });
        }
        for _ in 0..200 {
            gate.replace(marked()).unwrap();
            gate.replace(limited()).unwrap();
        }
        is_done.store(1, Ordering::Relaxed);
    });
    let call = get("203.0.113.7", "/");
    let rest = (0..=BURST).filter(|_| {
        gate.try_decide(&call.request(), |it| it.map(Outcome::take)).unwrap().unwrap().is_allowed()
    });
    assert_eq!(admitted.into_inner() + rest.count(), BURST);
}
