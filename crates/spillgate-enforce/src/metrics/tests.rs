use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Uri};
use spillgate::{Clock, ManualClock, Timestamp};
use spillgate_policy::store::{CallQuota, Memory};
use spillgate_policy::{Gate, LimitCheck, Policy, RequestView, Throttle};

use super::*;
use crate::Enforcer;

type TestEnforcer = Enforcer<Memory<ManualClock>>;

fn enforcer(policy: &str) -> (TestEnforcer, Metrics, ManualClock) {
    let clock = ManualClock::default();
    clock.set(Timestamp::from_secs(1_000_000));
    let policy = Policy::from_toml(policy).unwrap().with_throttle(100_000, Default::default());
    let gate = Gate::with_store(policy, Memory::new(clock.clone())).unwrap();
    let metrics = Metrics::new();
    (Enforcer::new(Arc::new(gate)).metrics(metrics.clone()).log(false), metrics, clock)
}

fn check(enforcer: &TestEnforcer, user: &str) -> bool {
    let allowed = enforcer
        .try_decide(&LimitCheck::new("l", &[user], 1), |outcome| outcome.unwrap().is_allowed());
    allowed.unwrap()
}

fn checks(enforcer: &TestEnforcer, user: &str, calls: usize) {
    for _ in 0..calls {
        check(enforcer, user);
    }
}

/// The callers, in clear.
fn callers(top: &TopCallers) -> Vec<(String, u64)> {
    top.callers.iter().map(|(key, count)| (key.in_clear(), *count)).collect()
}

const BY_USER: &str = "[[limit]]\nname = 'l'\nper = 'user'\nby-name = true\nquota = '10/h'\n";

#[test]
fn whoever_is_denied_is_listed_with_an_exact_count() {
    let (enforcer, metrics, clock) = enforcer(BY_USER);
    for (user, calls) in [("alice", 10), ("bob", 13), ("carol", 40)] {
        let allowed = (0..calls).filter(|_| check(&enforcer, user)).count();
        assert_eq!(allowed, 10);
    }
    let limit = &metrics.callers(clock.now(), None, 10)[0];
    assert_eq!((limit.denied.total, limit.denied.error), (33, 0));
    let denied = [("user=carol".to_owned(), 30), ("user=bob".to_owned(), 3)];
    assert_eq!(callers(&limit.denied), denied);
    assert_eq!(limit.allowed.total, 30);
    assert_eq!(metrics.callers(clock.now(), None, 1)[0].denied.callers.len(), 1);
    let counts = &metrics.limits()[0];
    assert_eq!((counts.allowed, counts.denied, counts.shadow_denied), (30, 33, 0));
}

#[test]
fn a_peek_is_nobodys_call() {
    let (enforcer, metrics, clock) = enforcer(BY_USER);
    enforcer.try_decide(&LimitCheck::new("l", &["alice"], 0), |_| ());
    assert!(metrics.callers(clock.now(), None, 10).is_empty());
}

#[test]
fn limits_in_shadow_have_a_list_of_their_own() {
    let shadow = format!("{BY_USER}mode = 'shadow'\n");
    let (enforcer, metrics, clock) = enforcer(&shadow);
    (0..12).for_each(|_| assert!(check(&enforcer, "alice")));
    let limit = &metrics.callers(clock.now(), None, 10)[0];
    assert_eq!(callers(&limit.shadow_denied), [("user=alice".to_owned(), 2)]);
    assert_eq!(limit.denied.total, 0);
}

#[test]
fn counts_are_of_the_last_minutes() {
    let (enforcer, metrics, clock) = enforcer(BY_USER);
    let denied = |clock: &ManualClock| {
        let limits = metrics.callers(clock.now(), None, 10);
        let covered = clock.now().since(limits[0].since);
        assert!(covered <= Duration::from_secs(600), "{covered:?}");
        callers(&limits[0].denied)
    };
    checks(&enforcer, "alice", 12);
    clock.advance(Duration::from_secs(299));
    assert_eq!(denied(&clock), [("user=alice".to_owned(), 2)]);
    clock.advance(Duration::from_secs(1));
    checks(&enforcer, "bob", 11);
    assert_eq!(denied(&clock).len(), 2, "the window before counts, too");
    clock.advance(Duration::from_secs(300));
    assert_eq!(denied(&clock), [("user=bob".to_owned(), 1)]);
    clock.advance(Duration::from_secs(600));
    assert_eq!(denied(&clock), []);
    // Also if nobody looks meanwhile.
    checks(&enforcer, "dave", 12);
    clock.advance(Duration::from_secs(599));
    checks(&enforcer, "erin", 12);
    clock.advance(Duration::from_secs(299));
    assert_eq!(denied(&clock), [("user=erin".to_owned(), 2)]);
    clock.advance(Duration::from_secs(600));
    // A clock that is set back loses nothing.
    checks(&enforcer, "carol", 13);
    clock.set(Timestamp::from_secs(1_000_001));
    checks(&enforcer, "carol", 30);
    let limits = metrics.callers(clock.now(), None, 10);
    let total = limits[0].denied.total;
    assert_eq!(callers(&limits[0].denied), [("user=carol".to_owned(), total)]);
}

#[test]
fn a_sample_stands_for_the_calls_after_it() {
    let policy = BY_USER.replace("10/h", "1000000/s burst 1000000");
    let (enforcer, metrics, clock) = enforcer(&policy);
    checks(&enforcer, "alice", 1000);
    clock.advance(Duration::from_secs(1));
    check(&enforcer, "bob");
    let limit = &metrics.callers(clock.now(), None, 10)[0];
    let expected = [("user=alice".to_owned(), 1000), ("user=bob".to_owned(), 1)];
    assert_eq!(callers(&limit.allowed), expected);
    assert_eq!(limit.allowed.total, metrics.limits()[0].allowed);
}

#[test]
fn allowed_callers_are_estimated() {
    let policy = BY_USER.replace("10/h", "1000000/s burst 1000000");
    let (enforcer, metrics, clock) = enforcer(&policy);
    // Alice makes three of four calls; a call takes a millisecond.
    for call in 0_u64..60_000 {
        let is_alice = call.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 != 0;
        check(&enforcer, if is_alice { "alice" } else { "bob" });
        clock.advance(Duration::from_millis(1));
    }
    let limit = &metrics.callers(clock.now(), None, 10)[0];
    assert_eq!(limit.allowed.total, 60_000);
    let top = callers(&limit.allowed);
    assert_eq!(top[0].0, "user=alice");
    assert!((40_000..50_000).contains(&top[0].1), "{top:?}");
}

#[test]
fn how_close_callers_come_is_counted_by_tenths() {
    let (enforcer, metrics, clock) = enforcer(BY_USER);
    for _ in 0..12 {
        check(&enforcer, "alice");
        clock.advance(Duration::from_millis(60));
    }
    assert_eq!(metrics.callers(clock.now(), None, 1)[0].used, [1; 10]);
    let text = metrics.encode();
    for (bound, count) in [("0.1", 1), ("0.5", 5), ("1.0", 10), ("+Inf", 12)] {
        let line = format!("quota_used_ratio_bucket{{le=\"{bound}\",limit=\"l\"}} {count}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
    assert!(text.contains("spillgate_quota_used_ratio_count{limit=\"l\"} 12\n"), "{text}");
    assert!(text.contains("spillgate_quota_used_ratio_sum{limit=\"l\"} 7.0\n"), "{text}");
}

#[test]
fn a_limit_for_everyone_lists_callers() {
    let policy = "[[limit]]\nname = 'l'\nper = 'global'\nquota = '1/h'\n";
    let (enforcer, metrics, clock) = enforcer(policy);
    let (uri, headers) = (Uri::from_static("/"), HeaderMap::new());
    for last in [7, 8, 8] {
        let peer = Some([203, 0, 113, last].into());
        let request = RequestView::new(&Method::GET, &uri, &headers, peer);
        enforcer.try_decide(&request, |_| ());
    }
    let limit = &metrics.callers(clock.now(), None, 10)[0];
    assert_eq!(callers(&limit.denied), [("caller=203.0.113.8".to_owned(), 2)]);
    assert_eq!(callers(&limit.allowed), [("caller=203.0.113.7".to_owned(), 1)]);
}

#[test]
fn a_flood_of_new_keys_hides_nobody() {
    let (enforcer, metrics, clock) = enforcer("limit = []");
    let quota = CallQuota::new("1/h".parse().unwrap()).unwrap();
    let throttle = |key: &[u8]| {
        // More than there ever is: each call is denied, and the table stays empty.
        enforcer.try_decide(&Throttle { key, quota, cost: 2 }, |_| ());
    };
    for call in 0_u32..60_000 {
        throttle(&call.to_le_bytes());
        if call % 50 == 0 {
            throttle(b"abuser");
        }
    }
    let limit = &metrics.callers(clock.now(), None, 1)[0];
    assert_eq!(limit.denied.total, 61_200);
    assert!(limit.denied.error <= 2 * limit.denied.total / 1792, "{}", limit.denied.error);
    let (name, count) = &callers(&limit.denied)[0];
    assert_eq!(name, "key=abuser");
    assert!(*count <= 1200 && 1200 <= count + limit.denied.error, "{count}");
}

#[test]
fn many_limits_share_what_memory_there_is() {
    let limits = (0..70).map(|number| {
        format!("[[limit]]\nname = 'l{number}'\nper = 'user'\nby-name = true\nquota = '1/h'\n")
    });
    let (enforcer, metrics, clock) = enforcer(&limits.collect::<String>());
    let users: Vec<_> = (0..2000).map(|user| user.to_string()).collect();
    for limit in (0..70).map(|number| format!("l{number}")) {
        for user in &users {
            enforcer.try_decide(&LimitCheck::new(&limit, &[user], 2), |_| ());
        }
    }
    let all = metrics.callers(clock.now(), None, usize::MAX);
    let kept: usize = all.iter().map(|limit| limit.denied.callers.len()).sum();
    assert!(kept <= 32 * 1792 + 38 * 56, "{kept}");
    assert!(all.iter().all(|limit| limit.denied.total == 2000));
}

#[test]
fn threads_count_every_denial() {
    let (enforcer, metrics, clock) = enforcer(BY_USER);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let enforcer = &enforcer;
            scope.spawn(move || {
                for call in 0..5000 {
                    check(
                        enforcer,
                        if call % 2 == 0 { "everyone" } else { ["a", "b"][thread % 2] },
                    );
                }
            });
        }
    });
    let limit = &metrics.callers(clock.now(), None, 10)[0];
    assert_eq!(limit.denied.total, 40_000 - 30);
    assert_eq!(limit.denied.callers.iter().map(|(_, count)| count).sum::<u64>(), 39_970);
    assert_eq!(limit.allowed.total, 30);
}
