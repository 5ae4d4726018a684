//! Banned callers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Method, Response, StatusCode};
use spillgate_tower::{Metrics, SpillgateLayer};

use crate::common::remote::remote;
use crate::common::{Answer, Body, PEER, gate, get, send, send_to};

const POLICY: &str = r#"
    [[limit]]
    name = "login"
    quota = "3/h"
    ban = { strikes = 2, duration = "90s" }
"#;

/// The status of a request that the service answers with this one.
async fn answered<S: spillgate_policy::store::Store>(
    layer: &SpillgateLayer<S>,
    status: u16,
) -> StatusCode {
    let handler = move |_| Response::builder().status(status).body(Body::default()).unwrap();
    send_to(layer, get(PEER, "/"), handler).await.status
}

async fn banned(
    policy: &str,
) -> (SpillgateLayer<spillgate_policy::store::Memory<spillgate::ManualClock>>, spillgate::ManualClock)
{
    let (gate, clock) = gate(policy);
    let layer = SpillgateLayer::new(gate);
    for expected in [200, 200, 200, 429, 429] {
        assert_eq!(send(&layer, get(PEER, "/")).await.status, expected);
    }
    (layer, clock)
}

#[tokio::test]
async fn a_banned_caller_is_refused_with_the_rest_of_the_ban() {
    let (layer, clock) = banned(POLICY).await;
    clock.advance(Duration::from_millis(29_500));
    let Answer { status, headers, body } = send(&layer, get(PEER, "/")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(headers["retry-after"], "61");
    assert_eq!(headers.get("ratelimit"), None, "no limit was asked");
    assert_eq!(
        body,
        r#"{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"This caller is banned. Try again in 61 s."}"#
    );
    assert_eq!(send(&layer, get("203.0.113.8", "/")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_ban_may_have_another_status() {
    let (layer, _) = banned(&POLICY.replace("strikes", "status = 403, strikes")).await;
    let refused = send(&layer, get(PEER, "/")).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(refused.header("retry-after").unwrap(), "90");
    assert!(refused.body.contains(r#""title":"Forbidden","status":403"#), "{}", refused.body);
    let request = get(PEER, "/");
    let view = spillgate_policy::RequestView::new(
        request.method(),
        request.uri(),
        request.headers(),
        Some(PEER.parse().unwrap()),
    );
    let verdict: Response<Body> = layer.enforcer().verdict(view).await;
    assert_eq!(verdict.status(), StatusCode::FORBIDDEN, "for a proxy that asks, too");
}

#[tokio::test]
async fn a_grpc_client_is_told_in_its_own_way() {
    for (status, code) in [(429, "8"), (403, "7")] {
        let policy = POLICY.replace("strikes", &format!("status = {status}, strikes"));
        let (layer, _) = banned(&policy).await;
        let mut request = get(PEER, "/");
        *request.method_mut() = Method::POST;
        request.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        let refused = send(&layer, request).await;
        assert_eq!(refused.status, StatusCode::OK);
        assert_eq!(refused.header("grpc-status").as_deref(), Some(code));
        assert_eq!(refused.header("grpc-retry-pushback-ms").as_deref(), Some("90000"));
    }
}

#[tokio::test]
async fn responses_with_some_statuses_lead_to_a_ban() {
    let policy = POLICY.replace("3/h", "100/h").replace("strikes", "on = [401, 404], strikes");
    let layer = SpillgateLayer::new(gate(&policy).0);
    for (given, expected) in [(200, 200), (401, 401), (200, 200), (404, 404), (200, 429)] {
        assert_eq!(answered(&layer, given).await, expected);
    }
}

#[tokio::test]
async fn bans_are_counted() {
    let metrics = Metrics::new();
    let policy = format!("{POLICY}{}", POLICY.replace("login", "watched").replace("3/h", "1/h"));
    let policy = policy.replacen("strikes", "mode = \"shadow\", strikes", 1);
    let layer = SpillgateLayer::new(gate(&policy).0).metrics(metrics.clone());
    for _ in 0..6 {
        send(&layer, get(PEER, "/")).await;
    }
    layer.gate().ban("user:1", Duration::from_secs(60), None).await.unwrap();
    let text = metrics.encode();
    for series in [
        "spillgate_bans{mode=\"enforce\"} 2",
        "spillgate_bans{mode=\"shadow\"} 0",
        "spillgate_banned_total 3",
        "spillgate_shadow_banned_total 0",
        "spillgate_strikes_total{limit=\"login\"} 0",
        "spillgate_strikes_total{limit=\"watched\"} 2",
        "spillgate_bans_started_total{limit=\"login\"} 0",
        "spillgate_bans_started_total{limit=\"watched\"} 1",
        "spillgate_bans_evicted_total 0",
        "spillgate_strikes_lost_total 0",
    ] {
        assert!(text.lines().any(|line| line == series), "{series}:\n{text}");
    }
}

#[tokio::test]
async fn requests_that_a_shadow_ban_would_refuse_are_counted() {
    let metrics = Metrics::new();
    let policy = POLICY.replace("strikes", "mode = \"shadow\", strikes");
    let layer = SpillgateLayer::new(gate(&policy).0).metrics(metrics.clone());
    for _ in 0..9 {
        send(&layer, get(PEER, "/")).await;
    }
    let text = metrics.encode();
    assert!(text.contains("spillgate_shadow_banned_total 4\n"), "{text}");
    assert!(text.contains("spillgate_banned_total 0\n"), "{text}");
    assert!(text.contains("spillgate_bans{mode=\"shadow\"} 1\n"), "{text}");
}

#[tokio::test]
async fn a_store_elsewhere_is_told_of_offences_and_bans_when_they_are_flushed() {
    let (layer, is_down) = remote(&POLICY.replace("strikes", "on = [\"denied\", 401], strikes"));
    let (gate, enforcer) = (layer.gate(), layer.enforcer());
    assert_eq!(answered(&layer, 401).await, 401);
    for expected in [200, 200, 429] {
        assert_eq!(answered(&layer, 200).await, expected);
    }
    assert_eq!(gate.bans().len(), 0, "nothing was flushed yet");
    is_down.store(true, Ordering::Relaxed);
    assert!(enforcer.flush_offences().await.is_err());
    is_down.store(false, Ordering::Relaxed);
    enforcer.flush_offences().await.unwrap();
    assert_eq!(gate.bans().len(), 1, "what could not be told was not forgotten");
    let edits = gate.store().take_published();
    assert_eq!(edits.len(), 1);
    assert_eq!(edits[0].key, "[\"ban\",\"ip:203.0.113.7\"]");
    assert_eq!(answered(&layer, 200).await, 429);
    enforcer.flush_offences().await.unwrap();
    assert_eq!(gate.store().take_published(), [], "told once");

    // Another node learns of it, and of its end.
    let (other, _) = remote(POLICY);
    assert!(other.gate().apply_ban(&edits[0]));
    assert_eq!(answered(&other, 200).await, 429);
    assert!(gate.lift(PEER).await.unwrap());
    let edits = gate.store().take_published();
    assert_eq!((edits.len(), edits[0].value.as_ref()), (1, None));
    assert!(other.gate().apply_ban(&edits[0]));
    assert_eq!(answered(&other, 200).await, 200);
}

#[tokio::test]
async fn what_an_operator_does_while_the_store_is_gone_is_told_later() {
    let (layer, is_down) = remote(POLICY);
    let gate = layer.gate();
    is_down.store(true, Ordering::Relaxed);
    assert!(gate.ban("user:1", Duration::from_secs(60), None).await.is_err());
    assert!(gate.ban_of("user:1").unwrap().is_some(), "in force here");
    is_down.store(false, Ordering::Relaxed);
    gate.flush_offences().await.unwrap();
    assert_eq!(gate.store().take_published().len(), 1);
}

#[tokio::test]
async fn offences_that_wait_are_bounded_and_what_is_lost_is_counted() {
    let policy = POLICY.replace("quota", "by-name = true\nper = \"user\"\nquota");
    let (layer, _) = remote(&policy);
    let enforcer = layer.enforcer();
    for user in 0..10_001 {
        let values = [&*user.to_string()];
        let check = spillgate_policy::LimitCheck::new("login", &values, 4);
        assert!(!enforcer.decide(&check).await.unwrap().is_allowed());
    }
    assert_eq!(layer.gate().ban_usage().lost_strikes, 1);
    layer.gate().flush_offences().await.unwrap();
    let check = spillgate_policy::LimitCheck::new("login", &["0"], 4);
    let _ = enforcer.decide(&check).await.unwrap();
    layer.gate().flush_offences().await.unwrap();
    assert_eq!(layer.gate().bans().len(), 1, "those that had room count");
}
