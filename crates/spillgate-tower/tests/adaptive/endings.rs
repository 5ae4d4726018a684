//! What the limit learns from how requests end.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tower::{Layer, ServiceExt};

use super::{SPARED, for_seconds, layer, open, state};
use crate::common::{PEER, get, send, send_to};

fn status(status: u16) -> impl Fn(Request<()>) -> Response<Full<Bytes>> + Clone + Send {
    move |_| {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response
    }
}

#[tokio::test]
async fn responses_of_500_and_above_are_failures_and_others_are_not() {
    for (code, fails) in [(200, false), (404, false), (429, false), (500, true), (503, true)] {
        let (layer, gate, clock) = layer(SPARED);
        for_seconds(10, &clock, async || {
            send_to(&layer, get(PEER, "/"), status(code)).await;
        })
        .await;
        let limit = state(&gate).status.limit;
        assert_eq!(limit < 1.0, fails, "{code}: {limit}");
    }
}

#[tokio::test]
async fn an_error_of_the_service_is_a_failure() {
    let (layer, gate, clock) = layer(SPARED);
    let fails = layer
        .layer(tower::service_fn(async |_: Request<()>| Err::<Response<Full<Bytes>>, _>("no")));
    for_seconds(10, &clock, async || {
        // Later ones are shed.
        let _ = fails.clone().oneshot(get(PEER, "/")).await;
    })
    .await;
    assert!(state(&gate).status.limit < 1.0, "{:?}", state(&gate));
}

#[tokio::test(start_paused = true)]
async fn an_error_after_the_wait_of_a_shaper_is_a_failure_too() {
    let shaper =
        "[[limit]]\nname = \"paced\"\nalgorithm = \"leaky-shaper\"\nquota = \"9/s burst 5\"\n";
    let (layer, gate, clock) = layer(&format!("{shaper}{SPARED}"));
    let fails = layer
        .layer(tower::service_fn(async |_: Request<()>| Err::<Response<Full<Bytes>>, _>("no")));
    for_seconds(10, &clock, async || {
        let _ = fails.clone().oneshot(get(PEER, "/")).await;
    })
    .await;
    assert!(state(&gate).status.limit < 1.0, "{:?}", state(&gate));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_says_nothing() {
    let (layer, gate, clock) = layer(SPARED);
    let slow = layer.layer(tower::service_fn(async |_: Request<()>| {
        pending::<()>().await;
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    }));
    for_seconds(10, &clock, async || {
        let gone = slow.clone().oneshot(get(PEER, "/"));
        assert!(tokio::time::timeout(Duration::from_millis(10), gone).await.is_err());
    })
    .await;
    let status = state(&gate).status;
    assert_eq!((status.limit, status.changes, status.in_flight), (1.0, 0, 0));
    send(&layer, get(PEER, "/")).await;
}

#[tokio::test]
async fn a_permit_is_held_until_the_end_of_the_body() {
    let (layer, gate, _) = layer(super::ONE);
    let response = open(&layer, get(PEER, "/")).await;
    assert_eq!(state(&gate).status.in_flight, 1, "the head is there, the body is not read");
    drop(response);
    assert_eq!(state(&gate).status.in_flight, 0);
}
