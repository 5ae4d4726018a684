//! A store that is gone, behind which the service is protected nevertheless.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Response;
use spillgate_policy::store::Store;
use spillgate_tower::{Metrics, OnStoreError, ResponseBody, SpillgateLayer};
use tower::{Layer, ServiceExt};

use super::{ONE, SPARED};
use crate::common::remote::remote;
use crate::common::{Body, PEER, get, send, send_to, service};

const STORED: &str = "[[limit]]\nname = \"public\"\nquota = \"2/h\"\n";

async fn open<S: Store>(layer: &SpillgateLayer<S>) -> Response<ResponseBody<Body>> {
    let hello = service(|_| Response::new("hello".into()));
    let Ok(response) = layer.layer(hello).oneshot(get(PEER, "/")).await;
    response
}

#[tokio::test]
async fn requests_that_go_ahead_without_the_store_still_meet_the_adaptive_limit() {
    let (layer, is_down) = remote(&(ONE.to_owned() + STORED));
    let metrics = Metrics::new();
    let layer = layer.on_store_error(OnStoreError::Allow).metrics(metrics.clone());
    is_down.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        let first = open(&layer).await;
        assert_eq!(first.status(), 200);
        let shed = send(&layer, get(PEER, "/")).await;
        assert_eq!(shed.status, 503);
        assert!(shed.body.contains("\"violated-policies\":[\"service\"]"), "{}", shed.body);
        drop(first);
    }
    let text = metrics.encode();
    assert!(
        text.contains("spillgate_shed_total{limit=\"service\",class=\"normal\"} 5\n"),
        "{text}"
    );
    is_down.store(false, Ordering::Relaxed);
    for status in [200, 200, 429] {
        assert_eq!(send(&layer, get(PEER, "/")).await.status, status, "nothing was spent");
    }
}

#[tokio::test]
async fn how_they_end_is_learnt() {
    let (layer, is_down) = remote(&(SPARED.to_owned() + STORED));
    let layer = layer.on_store_error(OnStoreError::Allow);
    is_down.store(true, Ordering::Relaxed);
    let failed = |_| Response::builder().status(502).body(Body::default()).unwrap();
    for _ in 0..200 {
        let _ = send_to(&layer, get(PEER, "/"), failed).await;
        layer.gate().store().clock.advance(Duration::from_millis(100));
    }
    let share = layer.gate().adaptive_states()[0].status.limit;
    assert!(share < 0.9, "{share}");
}
