//! What is counted.

use http::Request;
use prometheus_client::registry::Registry;
use spillgate_policy::Policy;
use spillgate_tower::{Metrics, MetricsFormat, SpillgateLayer};

use crate::common::{PEER, gate, get, send};

const POLICY: &str = r#"
    allow = ["192.0.2.1"]
    block = ["192.0.2.66"]
    [[limit]]
    name = "public"
    match = { path = "/public" }
    quota = "3/h"
    [[limit]]
    name = "tight"
    match = { path = "/public" }
    per = "ip"
    quota = "2/h"
    [[limit]]
    name = "watched"
    match = { path = "/public" }
    quota = "1/h"
    mode = "shadow"
"#;

/// The value of a metric in the text.
fn value(text: &str, series: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    line.parse().ok()
}

#[tokio::test]
async fn every_decision_is_counted_once_under_each_limit() {
    let metrics = Metrics::new();
    let layer = SpillgateLayer::new(gate(POLICY).0).metrics(metrics.clone()).log(false);
    for _ in 0..5 {
        send(&layer, get(PEER, "/public")).await;
    }
    for (peer, path, times) in
        [("192.0.2.1", "/public", 4), ("192.0.2.66", "/public", 6), (PEER, "/other", 7)]
    {
        for _ in 0..times {
            send(&layer, get(peer, path)).await;
        }
    }
    let text = metrics.encode();
    let requests = |limit: &str, outcome: &str| {
        let series = format!("spillgate_requests_total{{limit=\"{limit}\",outcome=\"{outcome}\"}}");
        value(&text, &series)
    };
    let outcomes =
        |limit| ["allowed", "denied", "shadow-denied"].map(|outcome| requests(limit, outcome));
    assert_eq!(outcomes("public"), [Some(2), Some(0), Some(0)], "{text}");
    assert_eq!(outcomes("tight"), [Some(2), Some(3), Some(0)], "{text}");
    assert_eq!(outcomes("watched"), [Some(1), Some(0), Some(1)], "{text}");
    assert_eq!(value(&text, "spillgate_unlimited_total"), Some(11));
    assert_eq!(value(&text, "spillgate_blocked_total"), Some(6));
    assert_eq!(value(&text, "spillgate_store_errors_total"), Some(0));
    assert_eq!(value(&text, "spillgate_missing_peer_total"), Some(0));
    assert_eq!(value(&text, "spillgate_live_callers{limit=\"tight\"}"), Some(1));
    assert_eq!(value(&text, "spillgate_evictions_total{limit=\"tight\"}"), Some(0));
    assert!(!text.contains("# EOF"), "only OpenMetrics has an end");
    assert!(metrics.encode_as(MetricsFormat::OpenMetrics).ends_with("# EOF\n"));
}

#[tokio::test]
async fn counting_goes_on_when_the_policy_changes() {
    let metrics = Metrics::new();
    let policy = |first: &str, second: &str| {
        let limits =
            [first, second].map(|name| format!("[[limit]]\nname = \"{name}\"\nquota = \"9/h\"\n"));
        limits.concat()
    };
    let layer = SpillgateLayer::new(gate(&policy("a", "b")).0).metrics(metrics.clone());
    for (first, second) in [("a", "b"), ("b", "c"), ("c", "a")] {
        layer.gate().replace(Policy::from_toml(&policy(first, second)).unwrap()).unwrap();
        send(&layer, get(PEER, "/")).await;
        send(&layer, get(PEER, "/")).await;
    }
    let text = metrics.encode();
    for limit in ["a", "b", "c"] {
        let series = format!("spillgate_requests_total{{limit=\"{limit}\",outcome=\"allowed\"}}");
        assert_eq!(value(&text, &series), Some(4), "{text}");
    }
    assert_eq!(value(&text, "spillgate_live_callers{limit=\"b\"}"), None, "it is no more");
}

#[tokio::test]
async fn layers_that_share_metrics_are_counted_together() {
    let metrics = Metrics::new();
    let layers = [(); 2].map(|()| SpillgateLayer::new(gate(POLICY).0).metrics(metrics.clone()));
    // The same gate again is the same callers again.
    let again = SpillgateLayer::new(layers[0].gate().clone()).metrics(metrics.clone());
    for layer in layers.iter().chain([&again]) {
        send(layer, get(PEER, "/public")).await;
    }
    let text = metrics.encode();
    let series = "spillgate_requests_total{limit=\"tight\",outcome=\"allowed\"}";
    assert_eq!(value(&text, series), Some(3), "{text}");
    assert_eq!(value(&text, "spillgate_live_callers{limit=\"tight\"}"), Some(2), "{text}");
    drop((layers, again));
    assert_eq!(value(&metrics.encode(), "spillgate_live_callers{limit=\"tight\"}"), None);
}

#[tokio::test]
async fn nothing_that_a_client_sends_is_in_the_metrics() {
    let metrics = Metrics::new();
    let policy = r#"
        [identity]
        api-key = { header = "x-api-key", accept = "any" }
        [[limit]]
        name = "public"
        quota = "1/h"
    "#;
    let layer = SpillgateLayer::new(gate(policy).0).metrics(metrics.clone());
    send(&layer, get(PEER, "/")).await;
    let before = metrics.encode();
    for client in 0..1_000 {
        let mut request = get(PEER, &format!("/{client}"));
        request.headers_mut().insert("x-api-key", format!("secret-{client}").parse().unwrap());
        send(&layer, request).await;
    }
    let text = metrics.encode();
    assert!(!text.contains("secret") && !text.contains(PEER), "{text}");
    assert_eq!(text.lines().count(), before.lines().count());
    assert_eq!(value(&text, "spillgate_live_callers{limit=\"public\"}"), Some(1_001));
}

#[tokio::test]
async fn one_decision_in_64_is_timed() {
    let metrics = Metrics::new();
    let layer = SpillgateLayer::new(gate(POLICY).0).metrics(metrics.clone());
    for _ in 0..640 {
        send(&layer, get(PEER, "/other")).await;
    }
    assert_eq!(value(&metrics.encode(), "spillgate_decision_seconds_count"), Some(10));
}

#[tokio::test]
async fn the_metrics_can_be_added_to_a_registry() {
    let metrics = Metrics::new();
    let layer = SpillgateLayer::new(gate(POLICY).0).metrics(metrics.clone());
    let mut registry = Registry::with_prefix("shop");
    metrics.register(&mut registry);
    send(&layer, Request::new(())).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert_eq!(value(&text, "shop_spillgate_missing_peer_total"), Some(1), "{text}");
    assert_eq!(value(&text, "shop_spillgate_live_callers{limit=\"public\"}"), Some(0), "{text}");
}
