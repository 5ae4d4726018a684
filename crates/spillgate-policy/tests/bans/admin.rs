//! What operators do and see, and what survives a new policy or a restart.

use spillgate::Clock;
use spillgate_policy::store::Edit;
use spillgate_policy::{Answer, Gate, LimitCheck, ListKind, Policy, Terms};

use super::gate::{STRICT, answers, seconds};
use crate::common::{gate, get};

#[tokio::test]
async fn an_operator_sets_replaces_and_lifts_bans() {
    let (gate, clock) = gate(STRICT);
    let call = get("203.0.113.7", "/");
    let ban = gate.ban("203.0.113.7", seconds(60), Some("test")).await.unwrap();
    assert_eq!((ban.reason(), ban.limit(), ban.since()), ("test", None, clock.now()));
    assert_eq!(call.through(&gate).retry_after(), Some(seconds(60)));
    gate.ban("ip:203.0.113.7", seconds(5), None).await.unwrap();
    assert_eq!(call.through(&gate).retry_after(), Some(seconds(5)), "shorter than before");
    assert_eq!(gate.bans().len(), 1);
    assert_eq!(gate.bans()[0].reason(), "set by an operator");
    assert!(gate.lift("203.0.113.7").await.unwrap());
    assert!(!gate.lift("203.0.113.7").await.unwrap());
    assert_eq!(answers(&call, &gate, 1), [Answer::Allowed]);
    for (caller, time, reason, expected) in [
        ("203.0.113.0/24", 60, None, "one caller, which is a /32"),
        ("2001:db8::/32", 60, None, "one caller, which is a /64"),
        ("anonymous", 60, None, "write an address"),
        ("somebody", 60, None, "write an address"),
        ("user:1", 0, None, "use a time between 1s and 365d"),
        ("user:1", 366 * 86_400, None, "use a time between 1s and 365d"),
        ("user:1", 60, Some("a\nb"), "control characters"),
        ("user:1", 60, Some(&*"x".repeat(257)), "257 bytes; write at most 256"),
    ] {
        let error = gate.ban(caller, seconds(time), reason).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{caller}: {error}");
    }
}

#[tokio::test]
async fn one_whose_ban_is_lifted_has_no_strikes_and_no_earlier_bans() {
    let (gate, _) = gate(STRICT);
    let call = get("203.0.113.7", "/");
    assert_eq!(call.passes(&gate, 3), 1);
    assert!(!gate.lift("203.0.113.7").await.unwrap(), "not banned yet");
    assert_eq!(answers(&call, &gate, 3), [Answer::Denied; 3]);
    assert!(gate.lift("203.0.113.7").await.unwrap());
    assert_eq!(answers(&call, &gate, 4)[..3], [Answer::Denied; 3]);
    assert_eq!(call.through(&gate).ban().unwrap().count(), 1);
}

#[test]
fn a_new_policy_leaves_bans_and_strikes_alone() {
    let (gate, _) = gate(STRICT);
    let (banned, striking) = (get("203.0.113.7", "/"), get("203.0.113.8", "/"));
    assert_eq!(banned.passes(&gate, 5), 1);
    assert_eq!(striking.passes(&gate, 3), 1);
    gate.replace(Policy::from_toml(STRICT).unwrap()).unwrap();
    assert_eq!(answers(&striking, &gate, 2), [Answer::Denied, Answer::Banned]);
    assert_eq!(gate.ban_usage().limits, [("api".to_owned(), 6, 2)]);
    gate.replace(Policy::from_toml("limit = []").unwrap()).unwrap();
    assert_eq!(answers(&banned, &gate, 1), [Answer::Banned]);
}

#[tokio::test]
async fn what_was_banned_is_banned_after_a_restart_for_the_rest_of_the_time() {
    let (before, clock) = gate(STRICT);
    let call = get("203.0.113.7", "/");
    assert_eq!(call.passes(&before, 5), 1);
    before.ban("user:42", seconds(60), Some("\"quoted\"")).await.unwrap();
    clock.advance(seconds(3));
    let edits = before.ban_edits();
    assert!(!format!("{edits:?}").contains("42"));
    let (after, later) = gate(STRICT);
    later.set(clock.now());
    assert!(edits.iter().all(|edit| after.apply_ban(edit)));
    assert_eq!(after.bans(), before.bans());
    assert_eq!(call.through(&after).retry_after(), Some(seconds(7)));
    later.advance(seconds(7));
    assert_eq!(answers(&call, &after, 1), [Answer::Allowed]);
    assert!(!after.apply_ban(&edits[0]), "it is over");
    let lifted = Edit::new(r#"["ban","user:42"]"#.into(), None, None);
    assert!(after.apply_ban(&lifted));
    assert_eq!(after.bans(), []);
    let other = Edit::new(r#"["list","block"]"#.into(), None, None);
    assert!(!after.apply_ban(&other));
}

#[tokio::test]
async fn an_explanation_says_who_is_banned_why_and_until_when() {
    let (gate, _) = gate(STRICT);
    let call = get("203.0.113.7", "/");
    assert_eq!(call.passes(&gate, 5), 1);
    let explained = gate.explain(&call.request()).await.unwrap();
    assert_eq!(explained.answer, Answer::Banned);
    let text = explained.to_string();
    assert!(text.contains("answer   banned\n"), "{text}");
    assert!(text.contains("ban      ip:203.0.113.7: api, once, ends in 10s\n"), "{text}");
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!(json["ban"]["ends-in"], 10.0);
    gate.list(ListKind::Allow, "203.0.113.7", Terms::permanent()).await.unwrap();
    let explained = gate.explain(&call.request()).await.unwrap();
    assert_eq!(explained.answer, Answer::Allowed);
    assert!(explained.ban.is_some(), "it would be, were it not for the list");
}

#[tokio::test]
async fn a_gate_of_the_system_clock_bans_too() {
    let gate = Gate::new(Policy::from_toml(STRICT).unwrap()).unwrap();
    gate.ban("user:1", seconds(60), None).await.unwrap();
    assert!(gate.ban_of("user:1").unwrap().is_some());
    assert!(gate.ban_of("user:2").unwrap().is_none());
}

const JOBS: &str = "[[limit]]\nname = 'jobs'\nby-name = true\nper = 'user'\nconcurrent = 1\n\
                    ban = { strikes = 3, duration = '1m' }\n";

#[tokio::test]
async fn a_banned_caller_acquires_no_permits_unless_it_is_on_the_allow_list() {
    let (gate, clock) = gate(JOBS);
    gate.ban("user:1", seconds(60), None).await.unwrap();
    let refused = gate.acquire("jobs", &["1"], 1, None).await.unwrap();
    assert_eq!((refused.outcome().answer(), refused.id()), (Answer::Banned, None));
    assert_eq!(refused.outcome().retry_after(), Some(seconds(60)));
    assert!(gate.acquire("jobs", &["2"], 1, None).await.unwrap().id().is_some());
    let terms = Terms::until(clock.now() + seconds(10));
    gate.list(ListKind::Allow, "user:1", terms).await.unwrap();
    let allowed = gate.acquire("jobs", &["1"], 1, None).await.unwrap();
    assert!(gate.release(allowed.id().unwrap()).await.unwrap());
    let check = LimitCheck::new("jobs", &["1"], 1);
    assert_eq!(gate.decide(&check).await.unwrap().answer(), Answer::Allowed);
    // Nothing has taken the entry out yet.
    clock.advance(seconds(10));
    assert_eq!(gate.decide(&check).await.unwrap().answer(), Answer::Banned);
    assert_eq!(gate.acquire("jobs", &["1"], 1, None).await.unwrap().id(), None);
    clock.advance(seconds(50));
    assert!(gate.acquire("jobs", &["1"], 1, None).await.unwrap().id().is_some());
}

#[tokio::test]
async fn to_acquire_more_than_there_is_is_an_offence() {
    let (gate, _) = gate(JOBS);
    let acquire = async || gate.acquire("jobs", &["1"], 1, None).await.unwrap();
    assert!(acquire().await.id().is_some());
    for _ in 0..3 {
        assert_eq!(acquire().await.outcome().answer(), Answer::Denied);
    }
    assert_eq!(acquire().await.outcome().answer(), Answer::Banned);
    assert_eq!(gate.ban_usage().limits, [("jobs".to_owned(), 3, 1)]);
}
