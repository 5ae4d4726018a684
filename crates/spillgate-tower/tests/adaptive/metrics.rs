//! What metrics say of adaptive limits.

use http::{Response, StatusCode};
use spillgate_tower::Metrics;

use super::{ONE, SPARED, for_seconds, layer, open};
use crate::common::{Body, PEER, get, send, send_to};

fn has(metrics: &Metrics, line: &str) {
    let text = metrics.encode();
    assert!(text.lines().any(|found| found == line), "{line}\n{text}");
}

/// The value of a sample.
fn value(metrics: &Metrics, name: &str) -> Option<f64> {
    let text = metrics.encode();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.map(|value| value.parse().unwrap())
}

#[tokio::test]
async fn shed_requests_and_where_the_limit_is_are_shown() {
    let (layer, _, _) = layer(ONE);
    let metrics = Metrics::new();
    let layer = layer.metrics(metrics.clone());
    has(&metrics, "spillgate_adaptive_limit{limit=\"service\"} 1.0");
    has(&metrics, "spillgate_adaptive_limit_min{limit=\"service\"} 1.0");
    has(&metrics, "spillgate_adaptive_limit_max{limit=\"service\"} 1.0");
    has(&metrics, "spillgate_adaptive_in_flight{limit=\"service\"} 0.0");
    has(&metrics, "spillgate_adaptive_signal_missing{limit=\"service\"} 0.0");
    assert!(!metrics.encode().contains("spillgate_adaptive_signal{"), "nothing was seen yet");
    let first = open(&layer, get(PEER, "/")).await;
    has(&metrics, "spillgate_adaptive_in_flight{limit=\"service\"} 1.0");
    for _ in 0..3 {
        assert_eq!(send(&layer, get(PEER, "/")).await.status, 503);
    }
    has(&metrics, "spillgate_shed_total{limit=\"service\",class=\"normal\"} 3");
    has(&metrics, "spillgate_shed_total{limit=\"service\",class=\"critical\"} 0");
    has(&metrics, "spillgate_requests_total{limit=\"service\",outcome=\"allowed\"} 1");
    let denied = "spillgate_requests_total{limit=\"service\",outcome=\"denied\"}";
    assert_eq!(value(&metrics, denied).unwrap_or(0.0), 0.0, "it is not the caller's fault");
    drop(first);
    has(&metrics, "spillgate_adaptive_in_flight{limit=\"service\"} 0.0");
}

#[tokio::test]
async fn changes_are_counted_by_their_reason_and_the_signal_is_shown() {
    let (layer, gate, clock) = layer(SPARED);
    let metrics = Metrics::new();
    let layer = layer.metrics(metrics.clone());
    for_seconds(20, &clock, async || {
        send_to(&layer, get(PEER, "/"), |_| {
            let mut response = Response::new(Body::default());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        })
        .await;
    })
    .await;
    // What the last request led to is noticed at the next.
    send(&layer, get(PEER, "/")).await;
    let changes = "spillgate_adaptive_changes_total{limit=\"service\",reason=\"failures\"}";
    let status = super::state(&gate).status;
    assert!(status.changes > 0, "{status:?}");
    assert_eq!(value(&metrics, changes), Some(status.changes as f64), "{}", metrics.encode());
    let signal = "spillgate_adaptive_signal{limit=\"service\",signal=\"errors\"}";
    assert!(value(&metrics, signal).is_some(), "{}", metrics.encode());
    assert!(!metrics.encode().contains("spillgate_adaptive_in_flight{"), "a share holds nothing");
    assert!(value(&metrics, "spillgate_adaptive_limit{limit=\"service\"}").unwrap() < 1.0);
}

#[tokio::test]
async fn a_policy_without_them_shows_none() {
    let (layer, _, _) = layer("[[limit]]\nname = \"api\"\nquota = \"5/s\"\n");
    let metrics = Metrics::new();
    send(&layer.metrics(metrics.clone()), get(PEER, "/")).await;
    let text = metrics.encode();
    assert!(!text.contains("adaptive_limit"), "{text}");
    assert!(!text.contains("spillgate_shed_total{"), "{text}");
}
