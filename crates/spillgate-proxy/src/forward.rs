//! Forwards one request: which upstream, which retries, which response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::HOST;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use spillgate_tower::HeldPermits;
use tower_service::Service;
use tracing::warn;

use super::body::{Body, RequestBody};
use super::client::Client;
use super::failure::Failure;
use super::trailers::TrailerFilter;
use super::upgrade::Switched;
use super::upstream::{Answered, InFlight, Unanswered, Upstream, UpstreamBody};
use super::{State, host, request, response};
use crate::settings::HostHeader;

/// What a request that offers to switch protocols holds, if it does.
type UpgradePermits = Option<HeldPermits>;

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
        // Upstreams have no use for them; an upgraded connection has.
        let permits = head.extensions.remove::<HeldPermits>();
        let upgrade = request::upgrade(&head);
        let upgrades = upgrade.is_some().then_some(permits);
        let is_trusted = self.policy.trusts(self.sender.address);
        let state = self.proxy.state.load_full();
        let via = state.settings.via;
        let named = request::prepare(&mut head, &self.sender, is_trusted, upgrade, via);
        let trailers = TrailerFilter::of_request(named, &self.policy, self.limits.max_headers);
        trailers.announce(&mut head.headers);
        let mut body = RequestBody::new(body, trailers);
        body.note_end(|| state.settings.upstream_controller.is_some() || self.policy.learns());
        let request = Request::from_parts(head, body);
        self.try_upstreams(&state, request, upgrades.as_ref()).await
    }

    /// Tries one upstream after the other, until one has received something of the request.
    async fn try_upstreams(
        &self,
        state: &State,
        mut request: Request<RequestBody>,
        upgrades: Option<&UpgradePermits>,
    ) -> Result<Response<Body>, Failure> {
        // Optional in HTTP/1.0, and required in HTTP/1.1.
        let is_missing = !request.headers().contains_key(HOST);
        let names_upstream = is_missing || state.settings.host == HostHeader::Upstream;
        let mut tried = Vec::new();
        let mut last = Failure::NoneHealthy;
        while let Some(upstream) = state.upstreams.choose(&tried) {
            let Some(mut in_flight) = state.upstreams.begin(upstream) else {
                tried.push(Arc::clone(upstream));
                last = Failure::AllBusy;
                continue;
            };
            if names_upstream {
                host::set(request.headers_mut(), &upstream.url.authority);
            }
            let answered = upstream.send(request, upgrades.is_some()).await;
            let answered = answered.and_then(Answered::validated);
            in_flight.record(&answered);
            let answered = match answered {
                Ok(answered) => self.answer(state, answered, in_flight, upgrades).await,
                Err(unanswered) => Err(unanswered),
            };
            let Unanswered { why, unsent } = match answered {
                Ok(response) => return Ok(response),
                Err(unanswered) => unanswered,
            };
            self.report(upstream, &why);
            let Some(unsent) = unsent else { return Err(why) };
            (request, last) = (*unsent, why);
            tried.push(Arc::clone(upstream));
        }
        self.report_busy(&last);
        Err(last)
    }

    fn report_busy(&self, why: &Failure) {
        if matches!(why, Failure::AllBusy) {
            self.proxy.log_limit.log(|suppressed| {
                warn!(suppressed, "every upstream has as many requests as it may have");
            });
        }
    }

    fn report(&self, upstream: &Upstream, why: &Failure) {
        if !why.is_of_client() {
            let url = &upstream.url;
            self.proxy.log_limit.log(|suppressed| {
                warn!(upstream = %url, error = %why, suppressed, "upstream failed");
            });
        }
    }

    async fn answer(
        &self,
        state: &State,
        answered: Answered,
        mut in_flight: InFlight,
        upgrades: Option<&UpgradePermits>,
    ) -> Result<Response<Body>, Unanswered> {
        if answered.response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let unasked = Failure::Ambiguous("101 without an Upgrade in the request");
            let (Some((mut head, connection)), Some(permits)) =
                (answered.into_connection(), upgrades)
            else {
                return Err(unasked.into());
            };
            response::prepare(&mut head, state.settings.via);
            in_flight.release_limit();
            self.upgrade.set(Switched { connection, in_flight, permits: permits.clone() });
            return Ok(Response::from_parts(head, Body::from("")));
        }
        let latency = answered.service_latency();
        let (mut head, body) = UpstreamBody::new(answered, in_flight).await;
        if let Some(latency) = latency {
            head.extensions.insert(latency);
        }
        let trailers = response::prepare(&mut head, state.settings.via);
        Ok(Response::from_parts(head, Body::of_upstream(body, trailers)))
    }
}
