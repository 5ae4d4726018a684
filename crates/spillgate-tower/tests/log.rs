//! What is logged, and what is not.
//!
//! These tests are apart from the others, since whether an event is wanted is remembered
//! for the whole process: here it always is.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

#[path = "log/adaptive.rs"]
mod adaptive;
mod common;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use spillgate::WhenFull;
use spillgate_policy::store::CallQuota;
use spillgate_policy::{
    Descriptor, Descriptors, Gate, Limit, LimitCheck, Limits, Policy, Throttle,
};
use spillgate_tower::{Enforcer, Metrics, SpillgateLayer};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Level, Metadata, Subscriber};

use self::common::remote::{overloaded, remote};
use self::common::{PEER, gate, get, one_limit, send};

/// An event, its fields as text.
#[derive(Debug)]
struct Event {
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Event {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Visit for Event {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

type Events = Arc<Mutex<Vec<Event>>>;

/// Keeps the events of this crate.
struct Capture(Events);

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "spillgate"
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut kept = Event { level: *event.metadata().level(), fields: BTreeMap::new() };
        event.record(&mut kept);
        self.0.lock().unwrap().push(kept);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The events of this thread, for as long as the guard is there.
fn captured() -> (Events, DefaultGuard) {
    let events = Events::default();
    let guard = tracing::subscriber::set_default(Capture(Arc::clone(&events)));
    (events, guard)
}

const POLICY: &str = r#"
    block = ["192.0.2.66"]
    [identity]
    api-key = { header = "x-api-key", accept = "any" }
    [[limit]]
    name = "public"
    quota = "1/h"
    [[limit]]
    name = "watched"
    quota = "1/day"
    mode = "shadow"
    match = { path = "/watched" }
    per = "header:x-secret"
"#;

const SECRET: &str = "hunter2-hunter2";

fn with_key(path: &str, key: &str) -> Request<()> {
    let mut request = get(PEER, path);
    request.headers_mut().insert("x-api-key", key.parse().unwrap());
    request.headers_mut().insert("x-secret", SECRET.parse().unwrap());
    request.headers_mut().insert("authorization", SECRET.parse().unwrap());
    request
}

#[tokio::test]
async fn a_denied_request_is_logged_with_its_caller_masked() {
    let layer = SpillgateLayer::new(gate(POLICY).0);
    let (events, _capturing) = captured();
    let path = format!("/thing?token={SECRET}");
    send(&layer, with_key(&path, SECRET)).await;
    assert_eq!(events.lock().unwrap().len(), 0, "allowed requests are not logged");
    send(&layer, with_key(&path, SECRET)).await;
    let events = events.lock().unwrap();
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!(event.level, Level::WARN);
    assert_eq!(event.field("message"), "denied");
    assert_eq!(event.field("limit"), "public");
    assert_eq!((event.field("method"), event.field("path")), ("GET", "/thing"));
    assert_eq!(event.field("retry_after_ms"), "3600000");
    assert_eq!(event.field("suppressed"), "0");
    assert!(event.field("caller").starts_with("api-key:#"), "{event:?}");
    assert_eq!(event.field("counted"), format!("caller={}", event.field("caller")));
    assert!(!format!("{event:?}").contains("hunter2"), "{event:?}");
}

#[tokio::test]
async fn a_ban_is_logged_once_and_what_it_refuses_is_too() {
    let policy = r#"
        [identity]
        api-key = { header = "x-api-key", accept = "any" }
        [[limit]]
        name = "public"
        quota = "1/h"
        ban = { strikes = 2, duration = "90s" }
    "#;
    for (mode, message, refused) in [
        ("enforce", "banned", "refused: banned"),
        ("shadow", "would be banned, but the ban is in shadow", "denied"),
    ] {
        let policy = policy.replace("strikes", &format!("mode = \"{mode}\", strikes"));
        let layer = SpillgateLayer::new(gate(&policy).0);
        let (events, _capturing) = captured();
        for _ in 0..5 {
            send(&layer, with_key("/", SECRET)).await;
        }
        let events = events.lock().unwrap();
        let messages: Vec<_> = events.iter().map(|event| event.field("message")).collect();
        assert_eq!(messages, ["denied", "denied", message, refused, refused]);
        let ban = &events[2];
        assert_eq!((ban.level, ban.field("limit")), (Level::WARN, "public"));
        assert_eq!((ban.field("duration_ms"), ban.field("count")), ("90000", "1"));
        assert!(ban.field("caller").starts_with("api-key:#"), "{ban:?}");
        assert_eq!(events[3].field("caller"), ban.field("caller"));
        assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");
    }
}

#[tokio::test]
async fn blocked_requests_and_denials_in_shadow_are_logged() {
    let layer = SpillgateLayer::new(gate(POLICY).0);
    let (events, _capturing) = captured();
    send(&layer, get("192.0.2.66", "/")).await;
    send(&layer, with_key("/watched", "one")).await;
    send(&layer, with_key("/watched", "two")).await;
    let events = events.lock().unwrap();
    let [blocked, shadow] = &events[..] else { panic!("{events:?}") };
    assert_eq!((blocked.level, blocked.field("message")), (Level::WARN, "blocked"));
    assert_eq!(blocked.field("caller"), "ip:192.0.2.66");
    assert_eq!((shadow.level, shadow.field("limit")), (Level::INFO, "watched"));
    assert!(shadow.field("counted").starts_with("header:x-secret=#"), "{shadow:?}");
    assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");
}

#[tokio::test]
async fn an_attack_does_not_fill_the_log() {
    let (gate, clock) = gate(POLICY);
    let layer = SpillgateLayer::new(gate);
    let (events, _capturing) = captured();
    for _ in 0..1_001 {
        send(&layer, get(PEER, "/")).await;
    }
    assert_eq!(events.lock().unwrap().len(), 20, "as many at once");
    clock.advance(Duration::from_millis(100));
    send(&layer, get(PEER, "/")).await;
    let events = events.lock().unwrap();
    assert_eq!(events.len(), 21);
    assert_eq!(events[20].field("suppressed"), "980");
}

#[tokio::test]
async fn a_path_cannot_deceive_whoever_reads_the_log() {
    let layer = SpillgateLayer::new(gate(POLICY).0);
    let (events, _capturing) = captured();
    let sent = ["/a\u{202e}b\u{85}c\"d".to_owned(), format!("/{}", "x".repeat(10_000))];
    send(&layer, get(PEER, "/")).await;
    for path in &sent {
        send(&layer, get(PEER, path)).await;
    }
    let events = events.lock().unwrap();
    assert_eq!(events[0].field("path"), "/a\\u{202e}b\\u{85}c\\\"d");
    assert_eq!(events[1].field("path"), format!("/{}…", "x".repeat(127)));
}

#[tokio::test]
async fn the_log_can_be_switched_off() {
    let layer = SpillgateLayer::new(gate(POLICY).0).log(false);
    let (events, _capturing) = captured();
    for _ in 0..5 {
        send(&layer, get(PEER, "/")).await;
    }
    assert_eq!(events.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_missing_address_is_an_error_that_is_logged_once_and_says_what_to_do() {
    let (gate, _) = one_limit("1/h");
    let metrics = Metrics::new();
    let layer = SpillgateLayer::new(gate).metrics(metrics.clone()).log(false);
    let (events, _capturing) = captured();
    for _ in 0..8 {
        // As a router does, a service for each request.
        send(&layer.clone(), Request::new(())).await;
    }
    let events = events.lock().unwrap();
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!(event.level, Level::ERROR);
    let message = event.field("message");
    assert!(message.contains("into_make_service_with_connect_info::<SocketAddr>()"), "{message}");
    assert!(message.contains("PeerAddr") && message.contains("peer_from"), "{message}");
    assert!(metrics.encode().contains("spillgate_missing_peer_total 8\n"));
}

#[tokio::test]
async fn a_closure_that_knows_no_address_is_not_an_error() {
    let (gate, _) = one_limit("1/h");
    let layer = SpillgateLayer::new(gate).peer_from(|_| None).log(false);
    let (events, _capturing) = captured();
    send(&layer, Request::new(())).await;
    assert_eq!(events.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_store_that_is_gone_is_logged_with_the_cause() {
    let (layer, is_down) = remote("[[limit]]\nname = \"public\"\nquota = \"1/h\"");
    let (events, _capturing) = captured();
    is_down.store(true, Ordering::Relaxed);
    for _ in 0..1_000 {
        send(&layer, get(PEER, "/")).await;
    }
    let events = events.lock().unwrap();
    // Once a minute: what is broken is told where it is noticed.
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].level, Level::ERROR);
    assert!(events[0].field("error").contains("connection refused"), "{:?}", events[0]);
}

/// The store itself says once that it is.
#[tokio::test]
async fn a_store_that_is_asked_too_much_is_not_logged_for_each_request() {
    let layer = overloaded("[[limit]]\nname = \"public\"\nquota = \"1/h\"");
    let (events, _capturing) = captured();
    send(&layer, get(PEER, "/")).await;
    assert_eq!(events.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn denials_of_every_kind_of_question_are_logged_and_counted_alike() {
    let named = Limit::new("named", "1/h").by_name().per(["user"]);
    let described = Limit::new("described", "1/h").domain("edge").descriptor("user", "*");
    let policy = Policy::builder().limit(named).limit(described).build().unwrap();
    let gate = Gate::new(policy.with_throttle(100, WhenFull::Evict)).unwrap();
    let metrics = Metrics::new();
    let enforcer = Enforcer::new(gate).metrics(metrics.clone());
    let (events, _guard) = captured();

    let check = |cost| LimitCheck { limit: "named", values: &["secret-alice"], cost };
    let entries = [("user", "secret-bob")];
    let descriptors = &[Descriptor::new(&entries)];
    let descriptors = Descriptors { domain: "edge", descriptors };
    let quota = CallQuota::new("1/h".parse().unwrap()).unwrap();
    let throttle = |cost| Throttle { key: b"secret-carol", quota, cost };
    for _ in 0..2 {
        let _ = enforcer.decide(&check(1)).await.unwrap();
        let _ = enforcer.decide(&descriptors).await.unwrap();
        enforcer.try_decide(&throttle(1), |it| assert!(it.is_ok())).unwrap();
        // Peeks are not counted.
        let _ = enforcer.decide(&Limits(&[check(0)])).await.unwrap();
        let _ = enforcer.decide(&throttle(0)).await.unwrap();
    }
    let text = metrics.encode();
    for limit in ["named", "described", "cl.throttle"] {
        for outcome in ["allowed", "denied"] {
            let line =
                format!("spillgate_requests_total{{limit=\"{limit}\",outcome=\"{outcome}\"}} 1\n");
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
    let events = events.lock().unwrap();
    let denied: Vec<_> = events.iter().map(|event| event.field("limit")).collect();
    assert_eq!(denied, ["named", "described", "cl.throttle"]);
    for (event, part) in events.iter().zip(["user=", "descriptor:user=", "key="]) {
        assert_eq!((event.level, event.field("message")), (Level::WARN, "denied"));
        assert!(event.field("counted").starts_with(part), "{event:?}");
        assert!(!format!("{event:?}").contains("secret"), "{event:?}");
    }
}

#[tokio::test]
async fn a_cost_that_was_not_charged_is_logged_however_it_is_settled() {
    let limit = Limit::new("l", "1/h burst 10").by_name().per(["user"]).max_debt(5);
    let metrics = Metrics::new();
    let gate = Gate::new(Policy::builder().limit(limit).build().unwrap()).unwrap();
    let enforcer = Enforcer::new(gate).metrics(metrics.clone());
    let (events, _guard) = captured();
    let mut outcome = enforcer.decide(&LimitCheck::new("l", &["alice"], 10)).await.unwrap();
    let settlement = enforcer.settle_actual(outcome.receipt().unwrap(), 18).await.unwrap();
    assert_eq!(settlement.settled.unwrap().uncharged, 3);
    assert_eq!(enforcer.settle_limit("l", &["alice"], 0, 4).await.unwrap().uncharged, 4);
    assert!(metrics.encode().contains("spillgate_uncharged_total{limit=\"l\"} 7\n"));
    assert_eq!(events.lock().unwrap().len(), 2);
}
