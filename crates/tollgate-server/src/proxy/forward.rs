//! One request: to whom it is sent, and what becomes of it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::HOST;
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use tower_service::Service;
use tracing::warn;

use super::body::{Body, RequestBody};
use super::client::Client;
use super::failure::Failure;
use super::upstream::{Answered, InFlight, Unanswered, UpstreamBody};
use super::{request, response};
use crate::config::Host;

/// Passes requests of a client on to upstreams.
#[derive(Clone, Debug)]
pub(super) struct Forward(pub(super) Arc<Client>);

impl Service<Request<Incoming>> for Forward {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let client = Arc::clone(&self.0);
        Box::pin(async move {
            let answered = client.exchange(request).await;
            Ok(answered.unwrap_or_else(|failure| {
                client.proxy.stats.failed(&failure);
                failure.response()
            }))
        })
    }
}

impl Client {
    async fn exchange(&self, request: Request<Incoming>) -> Result<Response<Body>, Failure> {
        let (mut head, body) = request.into_parts();
        let upgrade = request::upgrade(&head);
        let upgrades = upgrade.is_some();
        let is_trusted = self.gate.policy().trusts(self.sender.address);
        request::prepare(&mut head, &self.sender, is_trusted, upgrade);
        self.pass_on(Request::from_parts(head, RequestBody::new(body)), upgrades).await
    }

    /// Sends a request to one upstream after the other, until one has seen it.
    async fn pass_on(
        &self,
        mut request: Request<RequestBody>,
        upgrades: bool,
    ) -> Result<Response<Body>, Failure> {
        let state = self.proxy.state.load_full();
        let mut tried = Vec::new();
        let mut last = Failure::NoneHealthy;
        while let Some(upstream) = state.upstreams.choose(&tried) {
            // HTTP/1.0 may leave it out, and HTTP/1.1 must not.
            let is_missing = !request.headers().contains_key(HOST);
            if is_missing || state.settings.host == Host::Upstream {
                request::set_host(request.headers_mut(), &upstream.url.authority);
            }
            let in_flight = upstream.begin();
            match upstream.send(request, upgrades).await {
                Ok(answered) => return self.answer(answered, in_flight, upgrades).await,
                Err(Unanswered { why, unsent }) => {
                    let url = &upstream.url;
                    if !why.is_of_client() {
                        self.proxy.seldom.tell(|left_out| {
                            warn!(upstream = %url, error = %why, left_out, "an upstream failed");
                        });
                    }
                    let Some(unsent) = unsent else { return Err(why) };
                    (request, last) = (*unsent, why);
                    tried.push(Arc::clone(upstream));
                }
            }
        }
        Err(last)
    }

    /// Makes an upstream's response the client's.
    async fn answer(
        &self,
        answered: Answered,
        in_flight: InFlight,
        upgrades: bool,
    ) -> Result<Response<Body>, Failure> {
        response::judge(answered.response.headers())?;
        if answered.response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let mut response = Response::new(Body::from(""));
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *response.headers_mut() = answered.response.headers().clone();
            response::prepare(
                StatusCode::SWITCHING_PROTOCOLS,
                Version::HTTP_11,
                response.headers_mut(),
            );
            let unasked = Failure::Ambiguous("it switches protocols, which nobody asked for");
            self.upgrade.set(answered.into_connection().filter(|_| upgrades).ok_or(unasked)?);
            return Ok(response);
        }
        let (mut head, body) = UpstreamBody::new(answered, in_flight).await;
        response::prepare(head.status, head.version, &mut head.headers);
        head.version = Version::HTTP_11;
        Ok(Response::from_parts(head, Box::new(body).into()))
    }
}
