//! Gates whose clock the test moves, and services behind them.
#![allow(dead_code, reason = "not every test needs all of it")]

pub(crate) mod remote;

use std::convert::Infallible;
use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use spillgate::ManualClock;
use spillgate_policy::store::{Memory, Store};
use spillgate_policy::{Gate, Policy};
use spillgate_tower::{PeerAddr, Refuse, ResponseBody, SpillgateLayer};
use tower::{Layer, Service, ServiceExt};

pub(crate) type TestGate = Gate<Memory<ManualClock>>;
pub(crate) type Body = Full<Bytes>;

pub(crate) fn gate(policy: &str) -> (TestGate, ManualClock) {
    let clock = ManualClock::default();
    let policy = Policy::from_toml(policy).unwrap();
    (Gate::with_store(policy, Memory::new(clock.clone())).unwrap(), clock)
}

/// A gate with one limit, called `public`.
pub(crate) fn one_limit(quota: &str) -> (TestGate, ManualClock) {
    gate(&format!("[[limit]]\nname = \"public\"\nquota = \"{quota}\""))
}

pub(crate) const PEER: &str = "203.0.113.7";

/// A request from some address.
pub(crate) fn get(peer: &str, path: &str) -> Request<()> {
    let mut request = Request::get(path).body(()).unwrap();
    request.extensions_mut().insert(PeerAddr(peer.parse::<IpAddr>().unwrap()));
    request
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) async fn of(response: Response<ResponseBody<Body>>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        Self { status: parts.status, headers: parts.headers, body }
    }

    /// The lines of a header, one after the other.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let lines: Vec<_> =
            self.headers.get_all(name).iter().map(|line| line.to_str().unwrap()).collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    }
}

/// Sends a request through a layer to a service that answers "hello".
pub(crate) async fn send<S, R>(layer: &SpillgateLayer<S, R>, request: Request<()>) -> Answer
where
    S: Store,
    R: Refuse<Body> + Send + Sync + 'static,
{
    send_to(layer, request, |_| Response::new(Body::from("hello"))).await
}

/// Sends a request through a layer to a service of its own.
pub(crate) async fn send_to<S, R>(
    layer: &SpillgateLayer<S, R>,
    request: Request<()>,
    handler: impl Fn(Request<()>) -> Response<Body> + Clone + Send + 'static,
) -> Answer
where
    S: Store,
    R: Refuse<Body> + Send + Sync + 'static,
{
    let service = layer.layer(service(handler));
    let Ok(response) = service.oneshot(request).await;
    Answer::of(response).await
}

pub(crate) fn service(
    handler: impl Fn(Request<()>) -> Response<Body> + Clone + Send + 'static,
) -> impl Service<Request<()>, Response = Response<Body>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    tower::service_fn(move |request| std::future::ready(Ok(handler(request))))
}
