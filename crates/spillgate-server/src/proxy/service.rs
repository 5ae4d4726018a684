//! From a request to its response: what is no request is refused, what exceeds a limit is
//! denied, and everything else is passed on.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::Service;
use spillgate_tower::{Spillgate, SpillgateLayer};
use tower_layer::Layer;
use tower_service::Service as _;

use super::answering::Answering;
use super::body::Body;
use super::client::Client;
use super::forward::Forward;
use super::{host, request};
use crate::AnyStore;
use crate::protocol::http::{AtWork, Problem, Pulse};

type Limited = Spillgate<Forward, AnyStore>;

/// Takes the requests of a client.
#[derive(Clone)]
pub(super) struct Inlet {
    client: Arc<Client>,
    limited: Limited,
}

impl Inlet {
    pub(super) fn new(client: &Arc<Client>, layer: &SpillgateLayer<AnyStore>) -> Self {
        let address = client.sender.address;
        // Once for a connection: to put it into every request would cost more.
        let layer = layer.clone().peer_from(move |_| Some(address));
        Self { client: Arc::clone(client), limited: layer.layer(Forward(Arc::clone(client))) }
    }
}

impl Service<Request<Incoming>> for Inlet {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, mut request: Request<Incoming>) -> Answer {
        let at_work = Some(Pulse::work(Arc::clone(&self.client.pulse)));
        let judged = request::judge(&request, &self.client.bounds);
        let over_http1 = request.version() != Version::HTTP_2;
        let may_switch = request::may_switch(request.headers());
        let from = match judged {
            Ok(()) => {
                // Here, so that limits and upstreams see the same host.
                host::to_origin_form(&mut request);
                From::Limited(self.limited.clone().call(request))
            }
            Err(problem) => From::Refused(Some(refuse(problem, request.version()))),
        };
        Answer { from, at_work, over_http1, may_switch, client: Arc::clone(&self.client) }
    }
}

fn refuse(problem: Problem, version: Version) -> Response<Body> {
    let mut response = problem.response().map(Body::from);
    if version != Version::HTTP_2 {
        // Whoever sends one such request may mean something by the next.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The response of a request.
pub(super) struct Answer {
    from: From,
    at_work: Option<AtWork<Arc<Pulse>>>,
    over_http1: bool,
    /// The connection was offered for another protocol, so it cannot be told whether what
    /// follows is HTTP.
    may_switch: bool,
    client: Arc<Client>,
}

enum From {
    Limited(<Limited as tower_service::Service<Request<Incoming>>>::Future),
    Refused(Option<Response<Body>>),
}

impl Future for Answer {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = match &mut self.from {
            From::Limited(limited) => ready!(Pin::new(limited).poll(context)),
            From::Refused(refused) => {
                Ok(refused.take().unwrap_or_else(|| Response::new(Body::from(""))))
            }
        };
        let at_work = self.at_work.take();
        Poll::Ready(answered.map(|mut response| {
            let has_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            let is_last = self.may_switch || self.client.readiness.is_draining();
            if self.over_http1 && is_last && !has_switched {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            let status = response.status();
            response.map(|body| match at_work {
                Some(at_work) => body.hold(Answering::new(&self.client, status, at_work)),
                None => body,
            })
        }))
    }
}

impl fmt::Debug for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet").field("client", &self.client).finish_non_exhaustive()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}
