//! Each way in which a request can end.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use spillgate_tower::{HeldPermits, Refusal, SpillgateLayer};
use tower::{Layer, Service, ServiceExt};

use super::{held, uploads};
use crate::common::{PEER, TestGate, gate, get};

/// Two frames and trailers, or a failure in place of them.
#[derive(Debug, Default)]
struct Frames {
    sent: usize,
    fails: bool,
}

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.sent += 1;
        Poll::Ready(match self.sent {
            1 | 2 => Some(Ok(Frame::data(Bytes::from_static(b"data")))),
            3 if self.fails => Some(Err("broken")),
            3 => Some(Ok(Frame::trailers(HeaderMap::from_iter([(
                http::header::ETAG,
                http::HeaderValue::from_static("end"),
            )])))),
            _ => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.sent >= 3
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(8)
    }
}

type Layered = SpillgateLayer<spillgate_policy::store::Memory<spillgate::ManualClock>>;

fn layer(gate: TestGate) -> (Layered, Arc<TestGate>) {
    let gate = Arc::new(gate);
    (SpillgateLayer::new(Arc::clone(&gate)).log(false), gate)
}

/// A service with these frames behind the layer.
fn frames(
    layer: &Layered,
    fails: bool,
) -> impl Service<
    Request<()>,
    Response = Response<spillgate_tower::ResponseBody<Frames>>,
    Error = Infallible,
> + Clone {
    let layer = layer.clone().respond_with(|_: &Refusal<'_>| Response::<Frames>::default());
    layer.layer(tower::service_fn(move |_: Request<()>| async move {
        Ok(Response::new(Frames { sent: 0, fails }))
    }))
}

#[tokio::test]
async fn a_permit_ends_with_the_last_frame_and_the_body_is_as_it_was() {
    let (layer, gate) = layer(uploads(1));
    let response = frames(&layer, false).oneshot(get(PEER, "/")).await.unwrap();
    assert_eq!(held(&gate), 1);
    let mut body = response.into_body();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(8), false));
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "data");
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "data");
    assert_eq!(held(&gate), 1, "in the middle of the body");
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["etag"], "end");
    assert!(body.is_end_stream() && body.frame().await.is_none());
    assert_eq!(held(&gate), 0, "although the body is still there");
    drop(body);
    assert_eq!(held(&gate), 0);
}

#[tokio::test]
async fn a_body_that_fails_or_is_dropped_returns_the_permit() {
    let (layer, gate) = layer(uploads(1));
    let mut body = frames(&layer, true).oneshot(get(PEER, "/")).await.unwrap().into_body();
    for _ in 0..2 {
        body.frame().await.unwrap().unwrap();
    }
    assert_eq!(held(&gate), 1);
    assert_eq!(body.frame().await.unwrap().unwrap_err(), "broken");
    assert_eq!(held(&gate), 0);
    let mut dropped = frames(&layer, true).oneshot(get(PEER, "/")).await.unwrap().into_body();
    dropped.frame().await.unwrap().unwrap();
    assert_eq!(held(&gate), 1);
    drop(dropped);
    assert_eq!(held(&gate), 0);
}

#[tokio::test]
async fn a_denied_request_gets_the_headers_and_holds_nothing() {
    let (layer, gate) = layer(uploads(1));
    let first = frames(&layer, false).oneshot(get(PEER, "/")).await.unwrap();
    let denied = frames(&layer, false).oneshot(get(PEER, "/")).await.unwrap();
    assert_eq!(denied.headers()["retry-after"], "1");
    assert_eq!(held(&gate), 1);
    drop(first);
    assert_eq!(held(&gate), 0);
    drop(denied);
}

#[tokio::test]
async fn an_error_of_the_service_returns_the_permit() {
    let (layer, gate) = layer(uploads(1));
    let fails = tower::service_fn(async |_: Request<()>| {
        Err::<Response<http_body_util::Full<Bytes>>, _>("no")
    });
    let mut future = Box::pin(layer.layer(fails).oneshot(get(PEER, "/")));
    assert_eq!(future.as_mut().await.unwrap_err(), "no");
    assert_eq!(held(&gate), 0, "although the future is still there");
}

#[tokio::test]
async fn a_panic_of_the_service_returns_the_permit() {
    let (layer, gate) = layer(uploads(1));
    let panics = tower::service_fn(async |request: Request<()>| {
        assert!(request.uri().path() == "/fine", "as it should");
        Ok::<_, Infallible>(Response::new(http_body_util::Full::<Bytes>::default()))
    });
    let service = layer.layer(panics);
    let joined = tokio::spawn(service.oneshot(get(PEER, "/"))).await;
    assert!(joined.unwrap_err().is_panic());
    assert_eq!(held(&gate), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_or_timed_out_request_returns_the_permit() {
    let (layer, gate) = layer(uploads(1));
    let slow = layer.layer(tower::service_fn(async |_: Request<()>| {
        pending::<()>().await;
        Ok::<_, Infallible>(Response::new(http_body_util::Full::<Bytes>::default()))
    }));
    let timed_out =
        tokio::time::timeout(Duration::from_secs(5), slow.clone().oneshot(get(PEER, "/"))).await;
    assert!(timed_out.is_err());
    assert_eq!(held(&gate), 0);
    let task = tokio::spawn(slow.oneshot(get(PEER, "/")));
    while held(&gate) == 0 {
        tokio::task::yield_now().await;
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(held(&gate), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_wait_its_turn_returns_the_permit() {
    let policy = "[[limit]]\nname = \"uploads\"\nper = \"ip\"\nconcurrent = 5\n\
                  [[limit]]\nname = \"paced\"\nquota = \"1/s burst 5\"\nalgorithm = \"leaky-shaper\"";
    let (layer, gate) = layer(gate(policy).0);
    drop(frames(&layer, false).oneshot(get(PEER, "/")).await.unwrap());
    let waiting = frames(&layer, false).oneshot(get(PEER, "/"));
    let waited = tokio::time::timeout(Duration::from_millis(10), waiting).await;
    assert!(waited.is_err(), "it has to wait for a second");
    assert_eq!(held(&gate), 0);
    let waited = frames(&layer, false).oneshot(get(PEER, "/")).await.unwrap();
    assert_eq!(held(&gate), 1, "also after a wait");
    drop(waited);
    assert_eq!(held(&gate), 0);
}

#[tokio::test]
async fn a_handler_can_hold_the_permits_for_longer() {
    let (layer, gate) = layer(uploads(1));
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let service = layer.layer(tower::service_fn(move |mut request: Request<()>| {
        let permits = request.extensions_mut().remove::<HeldPermits>();
        sender.send(permits).unwrap();
        async { Ok::<_, Infallible>(Response::new(http_body_util::Full::<Bytes>::default())) }
    }));
    drop(service.clone().oneshot(get(PEER, "/")).await.unwrap());
    let permits = receiver.recv().await.unwrap().expect("the request meets a concurrency limit");
    let clone = permits.clone();
    drop(permits);
    assert_eq!(held(&gate), 1, "as long as a clone is there");
    drop(clone);
    assert_eq!(held(&gate), 0);
}

#[tokio::test]
async fn a_request_without_permits_is_offered_none() {
    let (gate, _) = gate("[[limit]]\nname = \"rate\"\nquota = \"10/s\"");
    let layer = SpillgateLayer::new(gate);
    let service = layer.layer(tower::service_fn(async |request: Request<()>| {
        assert!(request.extensions().get::<HeldPermits>().is_none());
        Ok::<_, Infallible>(Response::new(http_body_util::Full::<Bytes>::default()))
    }));
    assert_eq!(service.oneshot(get(PEER, "/")).await.unwrap().status(), 200);
}
