//! A store that has to be waited for, and one that is gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Method, Response, StatusCode};
use spillgate_tower::{Metrics, OnStoreError};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::common::remote::{overloaded, remote};
use crate::common::{Body, PEER, get, send, send_to};

const POLICY: &str = "[[limit]]\nname = \"public\"\nquota = \"2/h\"\nsettle = { status = [401] }";

#[tokio::test]
async fn a_remote_store_decides_as_one_in_memory_does() {
    let (layer, _) = remote(POLICY);
    let failed = |_| Response::builder().status(401).body(Body::default()).unwrap();
    for _ in 0..5 {
        let answer = send(&layer, get(PEER, "/")).await;
        assert_eq!((answer.status, &*answer.body), (StatusCode::OK, "hello"), "given back");
    }
    assert_eq!(
        send_to(&layer, get(PEER, "/"), failed).await.header("ratelimit").unwrap(),
        "\"public\";r=1;t=1800"
    );
    assert_eq!(send_to(&layer, get(PEER, "/"), failed).await.status, StatusCode::UNAUTHORIZED);
    let denied = send(&layer, get(PEER, "/")).await;
    assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(denied.header("retry-after").unwrap(), "1800");
}

#[tokio::test(start_paused = true)]
async fn a_remote_shaper_has_requests_wait_and_gives_places_back() {
    let policy =
        "[[limit]]\nname = \"paced\"\nquota = \"10/s burst 2\"\nalgorithm = \"leaky-shaper\"";
    let (layer, _) = remote(policy);
    assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::OK);
    for _ in 0..5 {
        let patience = Duration::from_millis(50);
        let given_up = tokio::time::timeout(patience, send(&layer, get(PEER, "/"))).await;
        assert!(given_up.is_err());
    }
    let begin = tokio::time::Instant::now();
    assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::OK);
    assert_eq!(begin.elapsed().as_millis(), 100);
}

#[tokio::test]
async fn if_the_store_is_gone_requests_get_a_503_and_may_try_again() {
    let (layer, is_down) = remote(POLICY);
    let metrics = Metrics::new();
    let layer = layer.metrics(metrics.clone());
    is_down.store(true, Ordering::Relaxed);
    let refused = send(&layer, get(PEER, "/")).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.header("retry-after").unwrap(), "1");
    assert_eq!(refused.header("ratelimit"), None);
    assert_eq!(
        refused.body,
        "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
         \"detail\":\"The rate limit could not be checked. Try again.\"}"
    );
    assert!(metrics.encode().contains("spillgate_store_errors_total 1\n"));
    is_down.store(false, Ordering::Relaxed);
    assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn if_the_store_is_gone_calls_are_told_that_the_service_is_unavailable() {
    let (layer, is_down) = remote(POLICY);
    is_down.store(true, Ordering::Relaxed);
    let mut call = get(PEER, "/service/method");
    *call.method_mut() = Method::POST;
    call.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    let status = Status::from_header_map(&send(&layer, call).await.headers).unwrap();
    assert_eq!(status.code(), Code::Unavailable);
    let delay = status.get_details_retry_info().unwrap().retry_delay;
    assert_eq!(delay, Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn if_the_store_is_asked_too_much_requests_are_refused_and_told_why() {
    for then in [OnStoreError::Refuse, OnStoreError::Allow] {
        let layer = overloaded(POLICY).on_store_error(then);
        let refused = send(&layer, get(PEER, "/")).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.header("retry-after").unwrap(), "1");
        let kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
        assert!(refused.body.contains(kind), "{}", refused.body);
        let mut call = get(PEER, "/service/method");
        *call.method_mut() = Method::POST;
        call.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        let status = Status::from_header_map(&send(&layer, call).await.headers).unwrap();
        assert_eq!(status.code(), Code::Unavailable);
    }
}

#[tokio::test]
async fn a_limit_in_shadow_lets_requests_pass_also_if_the_store_is_gone() {
    let (layer, is_down) = remote(&POLICY.replace("settle", "mode = \"shadow\"\nsettle"));
    let metrics = Metrics::new();
    let layer = layer.metrics(metrics.clone());
    is_down.store(true, Ordering::Relaxed);
    assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::OK);
    assert!(!metrics.encode().contains("spillgate_store_errors_total 0\n"), "and it is told");
}

#[tokio::test]
async fn or_they_go_ahead_if_that_is_preferred() {
    let (layer, is_down) = remote(POLICY);
    let layer = layer.on_store_error(OnStoreError::Allow);
    is_down.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        let answer = send(&layer, get(PEER, "/")).await;
        assert_eq!((answer.status, answer.header("ratelimit")), (StatusCode::OK, None));
    }
}

#[tokio::test]
async fn a_response_is_not_lost_if_the_store_cannot_settle() {
    let (layer, is_down) = remote(POLICY);
    let metrics = Metrics::new();
    let layer = layer.metrics(metrics.clone());
    let answer = send_to(&layer, get(PEER, "/"), move |_| {
        is_down.store(true, Ordering::Relaxed);
        Response::new(Body::from("hello"))
    });
    assert_eq!(answer.await.body, "hello");
    assert!(metrics.encode().contains("spillgate_store_errors_total 1\n"));
}
