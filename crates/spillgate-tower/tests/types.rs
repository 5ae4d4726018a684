//! What the layer leaves as it is: errors, bodies, readiness.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{Empty, Full};
use spillgate_tower::{GrpcStatus, ResponseBody, SpillgateLayer};
use tower::{Layer, Service, ServiceExt};

use crate::common::{PEER, get, one_limit};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Broken(&'static str);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[tokio::test]
async fn the_error_of_the_service_is_untouched() {
    let (gate, _) = one_limit("1/min");
    let broken =
        tower::service_fn(async |_: Request<()>| Err::<Response<Full<Bytes>>, _>(Broken("no")));
    let mut service = SpillgateLayer::new(gate).layer(broken);
    let error = service.ready().await.unwrap().call(get(PEER, "/")).await.unwrap_err();
    assert_eq!(error, Broken("no"));
    let denied = service.ready().await.unwrap().call(get(PEER, "/")).await.unwrap();
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS, "the cost of an error stands");
}

#[tokio::test]
async fn the_body_of_the_service_is_wrapped_and_need_not_hold_anything() {
    let (gate, _) = one_limit("1/min");
    let empty = tower::service_fn(async |_: Request<()>| {
        Ok::<Response<Empty<Bytes>>, Broken>(Response::new(Empty::new()))
    });
    // A body that cannot hold anything is good enough for gRPC.
    let service = SpillgateLayer::new(gate).respond_with(GrpcStatus).layer(empty);
    let first: Response<ResponseBody<Empty<Bytes>>> =
        service.clone().oneshot(get(PEER, "/")).await.unwrap();
    assert_eq!(first.headers().get("grpc-status"), None);
    let denied: Response<ResponseBody<Empty<Bytes>>> =
        service.oneshot(get(PEER, "/")).await.unwrap();
    assert_eq!(denied.headers()["grpc-status"], "8");
}

/// Counts how often it was made ready and called.
#[derive(Default)]
struct Counting {
    ready: Arc<AtomicUsize>,
    called: Arc<AtomicUsize>,
    is_ready: bool,
}

/// A clone has to be made ready by itself.
impl Clone for Counting {
    fn clone(&self) -> Self {
        let (ready, called) = (Arc::clone(&self.ready), Arc::clone(&self.called));
        Self { ready, called, is_ready: false }
    }
}

impl Service<Request<()>> for Counting {
    type Response = Response<Full<Bytes>>;
    type Error = Broken;
    type Future = std::future::Ready<Result<Self::Response, Broken>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.ready.fetch_add(1, Ordering::Relaxed);
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called without having been made ready");
        self.called.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(Response::default()))
    }
}

#[tokio::test]
async fn a_refused_request_does_not_reach_the_service() {
    let (gate, _) = one_limit("1/min burst 3");
    let counting = Counting::default();
    let mut service = SpillgateLayer::new(gate).layer(counting.clone());
    for _ in 0..10 {
        service.ready().await.unwrap().call(get(PEER, "/")).await.unwrap();
    }
    assert_eq!(counting.called.load(Ordering::Relaxed), 3);
    assert_eq!(counting.ready.load(Ordering::Relaxed), 10);
}

#[tokio::test(start_paused = true)]
async fn a_service_is_called_only_once_it_is_ready_also_after_a_wait() {
    let policy = "[[limit]]\nname = \"paced\"\nquota = \"10/s\"\nalgorithm = \"leaky-shaper\"";
    let (gate, _) = crate::common::gate(policy);
    let counting = Counting::default();
    let mut service = SpillgateLayer::new(gate).layer(counting.clone());
    for _ in 0..5 {
        service.ready().await.unwrap().call(get(PEER, "/")).await.unwrap();
    }
    assert_eq!(counting.called.load(Ordering::Relaxed), 5);
}

#[test]
fn clones_share_the_gate() {
    let (gate, _) = one_limit("1/min");
    let layer = SpillgateLayer::new(Arc::new(gate));
    assert!(Arc::ptr_eq(layer.gate(), layer.clone().log(false).gate()));
}
