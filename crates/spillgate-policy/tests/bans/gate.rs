//! What a ban does to requests and checks.

use std::sync::Barrier;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use spillgate_policy::{Answer, LimitCheck, Limits, ListKind, Mode, Terms};

use crate::common::{Call, TestGate, at_once, gate, get};

/// One call per hour, and a ban after three denials.
pub(super) const STRICT: &str = r#"
[[limit]]
name = "api"
quota = "1/h"
ban = { strikes = 3, window = "1m", duration = "10s" }
"#;

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn answers(call: &Call, gate: &TestGate, calls: usize) -> Vec<Answer> {
    (0..calls).map(|_| call.through(gate).answer()).collect()
}

fn respond(call: &Call, gate: &TestGate, status: u16) -> Answer {
    let mut outcome = call.through(gate);
    if outcome.needs_settling() {
        let status = StatusCode::from_u16(status).unwrap();
        let settled = gate.settle_now(&mut outcome, status, &HeaderMap::new()).unwrap();
        assert!(settled.error.is_none());
    }
    outcome.answer()
}

#[test]
fn a_caller_who_is_denied_often_is_banned_to_the_nanosecond() {
    use Answer::{Allowed, Banned, Denied};
    let (gate, clock) = gate(STRICT);
    let call = get("203.0.113.7", "/");
    assert_eq!(answers(&call, &gate, 5), [Allowed, Denied, Denied, Denied, Banned]);
    assert_eq!(answers(&get("203.0.113.8", "/"), &gate, 1), [Allowed]);

    clock.advance(seconds(4));
    let outcome = call.through(&gate);
    assert_eq!(outcome.retry_after(), Some(seconds(6)));
    assert_eq!(outcome.limits().count(), 0, "nothing is spent");
    let ban = outcome.ban().unwrap();
    assert_eq!((ban.reason(), ban.limit(), ban.count()), ("api", Some("api"), 1));
    assert_eq!(ban.status(), StatusCode::TOO_MANY_REQUESTS);

    clock.advance(seconds(6) - Duration::from_nanos(1));
    assert_eq!(answers(&call, &gate, 1), [Banned], "requests extend nothing");
    clock.advance(Duration::from_nanos(1));
    assert_eq!(answers(&call, &gate, 4), [Denied, Denied, Denied, Banned]);
    assert_eq!(call.through(&gate).ban().unwrap().count(), 2);
    assert_eq!(call.through(&gate).retry_after(), Some(seconds(20)));
}

#[tokio::test]
async fn the_lists_take_precedence() {
    let (gate, _) = gate(STRICT);
    let call = get("203.0.113.7", "/");
    assert_eq!(call.passes(&gate, 5), 1);
    gate.list(ListKind::Allow, "203.0.113.7", Terms::permanent()).await.unwrap();
    assert_eq!(answers(&call, &gate, 1), [Answer::Allowed]);
    gate.list(ListKind::Block, "203.0.113.0/24", Terms::permanent()).await.unwrap();
    assert_eq!(answers(&call, &gate, 1), [Answer::Blocked]);
    gate.unlist(ListKind::Block, "203.0.113.0/24").await.unwrap();
    gate.unlist(ListKind::Allow, "203.0.113.7").await.unwrap();
    assert_eq!(answers(&call, &gate, 1), [Answer::Banned]);
}

#[tokio::test]
async fn the_allow_list_takes_precedence_in_checks_by_name_too() {
    let (gate, _) = gate(STRICT);
    let check = LimitCheck::new("api", &["2001:db8:0:1::7"], 1);
    gate.ban("2001:db8:0:1::9", seconds(60), None).await.unwrap();
    assert_eq!(gate.decide(&check).await.unwrap().answer(), Answer::Banned);
    gate.list(ListKind::Allow, "2001:db8:0:1::7", Terms::permanent()).await.unwrap();
    assert_eq!(gate.decide(&check).await.unwrap().answer(), Answer::Allowed);
}

#[tokio::test]
async fn a_banned_caller_acquires_no_permits() {
    let (gate, clock) = gate("[[limit]]\nname = \"jobs\"\nconcurrent = 1\nby-name = true");
    gate.ban("203.0.113.7", seconds(60), None).await.unwrap();
    clock.advance(seconds(20));
    let refused = gate.acquire("jobs", &["203.0.113.7"], 1, None).await.unwrap();
    assert_eq!((refused.outcome().answer(), refused.id()), (Answer::Banned, None));
    assert_eq!(refused.outcome().retry_after(), Some(seconds(40)));
    assert_eq!(gate.usage()[0].1.held, 0);

    let other = gate.acquire("jobs", &["203.0.113.8"], 1, None).await.unwrap();
    assert!(other.outcome().is_allowed());
    gate.list(ListKind::Allow, "203.0.113.7", Terms::permanent()).await.unwrap();
    let listed = gate.acquire("jobs", &["203.0.113.7"], 1, None).await.unwrap();
    assert!(listed.id().is_some(), "the allow list takes precedence");
}

#[test]
fn an_ipv6_subscriber_is_one_caller() {
    let (gate, _) = gate(STRICT);
    for address in ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:3::", "2001:db8:1:2::4"] {
        let _ = get(address, "/").through(&gate);
    }
    assert_eq!(answers(&get("2001:db8:1:2::5", "/"), &gate, 1), [Answer::Banned]);
    assert_eq!(answers(&get("2001:db8:1:3::5", "/"), &gate, 1), [Answer::Allowed]);
    let bans = gate.bans();
    assert_eq!(bans[0].caller_text(), "2001:db8:1:2::/64");
    for text in ["2001:db8:1:2::/64", "2001:db8:1:2::77", "ip:2001:db8:1:2::"] {
        assert!(gate.ban_of(text).unwrap().is_some(), "{text}");
    }
}

#[test]
fn a_shadow_ban_is_listed_and_refuses_nobody() {
    let (gate, _) = gate(&STRICT.replace("strikes = 3", "mode = \"shadow\", strikes = 3"));
    let call = get("203.0.113.7", "/");
    assert_eq!(answers(&call, &gate, 6)[1..], [Answer::Denied; 5]);
    let outcome = call.through(&gate);
    assert_eq!(outcome.ban().unwrap().mode(), Mode::Shadow);
    assert!(!outcome.is_plain());
    let usage = gate.ban_usage();
    assert_eq!((usage.enforced, usage.shadow), (0, 1));
    assert_eq!(usage.limits, [("api".to_owned(), 6, 1)]);
}

#[test]
fn only_the_next_may_be_refused() {
    use Answer::{Allowed, Banned};
    let (gate, clock) = gate(&STRICT.replace("strikes = 3", "refuse = \"next\", strikes = 3"));
    let call = get("203.0.113.7", "/");
    assert_eq!(answers(&call, &gate, 5), [Allowed, Allowed, Allowed, Allowed, Banned]);
    clock.advance(seconds(10));
    assert_eq!(answers(&call, &gate, 4), [Allowed, Allowed, Allowed, Banned]);
}

#[test]
fn responses_of_some_statuses_are_offences() {
    use Answer::{Allowed, Banned};
    let (gate, _) = gate(
        "[[limit]]\nname = \"login\"\nquota = \"burst 100\"\nper = [\"path:id\", \"ip\"]\n\
         match = { path = \"/login/{id}\" }\nban = { strikes = 2, on = [401, \"5xx\"], status = 403 }",
    );
    let call = get("203.0.113.7", "/login/a");
    assert!(!call.through(&gate).is_plain(), "or the layer would not report the response");
    let given: Vec<_> = [200, 401, 404, 200].map(|status| respond(&call, &gate, status)).into();
    assert_eq!(given, [Allowed; 4]);
    // Another path, another count of the limit, but the same caller.
    let other = get("203.0.113.7", "/login/b");
    assert_eq!([503, 200].map(|status| respond(&other, &gate, status)), [Allowed, Banned]);
    assert_eq!(answers(&get("203.0.113.7", "/elsewhere"), &gate, 1), [Banned], "from everything");
    assert_eq!(call.through(&gate).ban().unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(answers(&get("203.0.113.8", "/login/a"), &gate, 1), [Allowed]);
}

#[test]
fn a_denied_request_is_no_offence_unless_the_ban_says_so() {
    let (gate, _) = gate(&STRICT.replace("strikes = 3", "on = 401, strikes = 1"));
    let call = get("203.0.113.7", "/");
    assert_eq!(answers(&call, &gate, 9)[1..], [Answer::Denied; 8]);
}

#[test]
fn one_request_is_one_offence() {
    let (gate, _) = gate(
        &STRICT.replace("strikes = 3", "refuse = \"next\", on = [\"denied\", 401], strikes = 3"),
    );
    let call = get("203.0.113.7", "/");
    // The first is a 401, the others exceed the limit, too.
    let given: Vec<_> = (0..4).map(|_| respond(&call, &gate, 401)).collect();
    assert_eq!(given, [Answer::Allowed, Answer::Allowed, Answer::Allowed, Answer::Banned]);
}

#[tokio::test]
async fn checks_by_name_offend_and_are_refused() {
    let (gate, _) = gate(STRICT);
    let each = LimitCheck::new("api", &["user:1"], 1);
    let peek = LimitCheck::new("api", &["user:1"], 0);
    assert!(gate.decide(&each).await.unwrap().is_allowed());
    for _ in 0..10 {
        let _ = gate.decide(&peek).await.unwrap();
        let _ = gate.peek_limit("api", &["user:1"], 1).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(gate.decide(&each).await.unwrap().answer(), Answer::Denied);
    }
    assert_eq!(gate.decide(&Limits(&[each])).await.unwrap().answer(), Answer::Denied);
    for answer in [
        gate.decide(&each).await.unwrap().answer(),
        gate.decide(&Limits(&[LimitCheck::new("api", &["user:2"], 1), each]))
            .await
            .unwrap()
            .answer(),
        gate.decide(&peek).await.unwrap().answer(),
    ] {
        assert_eq!(answer, Answer::Banned);
    }
    let other = LimitCheck::new("api", &["user:2"], 1);
    assert!(gate.decide(&other).await.unwrap().is_allowed(), "and nothing was spent for it");
}

#[tokio::test]
async fn a_program_reports_offences() {
    let (gate, _) = gate(&format!("{STRICT}[[limit]]\nname = \"none\"\nquota = \"1/h\"\n"));
    for _ in 0..2 {
        assert!(gate.strike("api", &["key:k1"]).await.unwrap().is_none());
    }
    let ban = gate.strike("api", &["key:k1"]).await.unwrap().unwrap();
    assert_eq!(ban.caller_text(), "key:k1");
    assert_eq!(gate.ban_of("api-key:k1").unwrap(), Some(ban.clone()));
    assert!(!format!("{ban:?}").contains("k1"), "{ban:?}");
    assert_eq!(gate.strike("api", &["key:k1"]).await.unwrap(), Some(ban), "banned already");
    assert_eq!((gate.ban_usage().limits[0].2, gate.take_started_bans().bans.len()), (1, 1));
    for (limit, values, expected) in [
        ("none", ["user:1"], "limit \"none\" bans nobody"),
        ("apj", ["user:1"], "there is no limit \"apj\""),
        ("api", ["anonymous"], "name one"),
        ("api", ["colour:1"], "not a caller"),
    ] {
        let error = gate.strike(limit, &values).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn bans_that_begin_beyond_those_that_are_kept_for_the_log_are_counted() {
    let (gate, _) = gate(&STRICT.replace("strikes = 3", "strikes = 1"));
    for user in 0..1_003 {
        assert!(gate.strike("api", &[&format!("user:{user}")]).await.unwrap().is_some());
    }
    let started = gate.take_started_bans();
    assert_eq!((started.bans.len(), started.others), (1_000, 3));
    assert_eq!(gate.take_started_bans().others, 0);
}

#[tokio::test]
async fn a_ban_that_an_operator_shortened_does_not_come_back_after_it() {
    let (gate, clock) = gate(STRICT);
    let call = get("203.0.113.7", "/");
    assert_eq!(answers(&call, &gate, 5)[4], Answer::Banned);
    gate.ban("203.0.113.7", seconds(2), None).await.unwrap();
    clock.advance(seconds(2));
    assert_eq!(answers(&call, &gate, 4)[..3], [Answer::Denied; 3]);
    assert_eq!(call.through(&gate).ban().unwrap().count(), 1);
}

#[test]
fn an_offence_during_a_ban_that_was_dropped_for_want_of_room_puts_it_in_force_again() {
    let (gate, clock) = gate(STRICT);
    let call = get("203.0.113.7", "/");
    assert_eq!(answers(&call, &gate, 5)[4], Answer::Banned);
    clock.advance(seconds(4));
    // Nearer its end than 100,000 others.
    for user in 0..100_000 {
        at_once(gate.ban(&format!("user:{user}"), seconds(60), None)).unwrap();
    }
    assert_eq!(answers(&call, &gate, 2), [Answer::Denied, Answer::Banned]);
    let outcome = call.through(&gate);
    assert_eq!((outcome.retry_after(), outcome.ban().unwrap().count()), (Some(seconds(6)), 1));
    assert_eq!(gate.ban_usage().limits[0].2, 1, "it did not begin twice");
}

#[test]
fn those_without_an_identity_are_never_banned() {
    let (gate, _) = gate(STRICT);
    let call = get("", "/");
    assert_eq!(answers(&call, &gate, 20)[1..], [Answer::Denied; 19]);
    assert_eq!(gate.bans(), []);
}

#[test]
fn many_threads_that_offend_at_once_are_banned_once() {
    const THREADS: usize = 8;
    for round in 0..50 {
        let (gate, _) = gate(STRICT);
        let call = get("203.0.113.7", "/");
        let barrier = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    barrier.wait();
                    (0..20).for_each(|_| drop(call.through(&gate)));
                });
            }
        });
        let usage = gate.ban_usage();
        assert_eq!((usage.enforced, usage.limits[0].2), (1, 1), "round {round}");
        assert_eq!(gate.bans()[0].count(), 1);
        assert_eq!(gate.take_started_bans().bans.len(), 1);
        assert_eq!(gate.take_started_bans().bans.len(), 0);
    }
}

#[tokio::test]
async fn a_flood_of_new_callers_with_strikes_ends_no_ban() {
    let policy = STRICT.replace("quota", "per = \"ip\"\nby-name = true\nquota");
    let (gate, _) = gate(&policy);
    let banned: Vec<_> =
        (0..1000_u32).map(|n| std::net::Ipv4Addr::from_bits(n + 1).to_string()).collect();
    for address in &banned {
        for _ in 0..3 {
            let _ = gate.strike("api", &[address]).await.unwrap();
        }
    }
    for number in 0..1_000_000_u32 {
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 | number).to_string();
        let begun = gate.strike("api", &[&address]).await.unwrap();
        assert!(begun.is_none());
    }
    let usage = gate.ban_usage();
    assert_eq!((usage.enforced, usage.evicted), (1000, 0));
    for address in &banned {
        let outcome = gate.decide(&LimitCheck::new("api", &[address], 1)).await.unwrap();
        assert_eq!(outcome.answer(), Answer::Banned);
    }
}
