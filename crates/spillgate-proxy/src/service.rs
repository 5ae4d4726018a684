//! From a request to its response: invalid requests are refused, those over a limit denied, all
//! others forwarded.

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
use spillgate_net::{Activity, InProgress};
use spillgate_policy::store::Store;
use spillgate_tower::{ResponseBody, Spillgate, SpillgateLayer};
use tower_layer::Layer;
use tower_service::Service as _;

use super::body::Body;
use super::client::Client;
use super::forward::Forward;
use super::problem::Problem;
use super::response_guard::ResponseGuard;
use super::{host, request};

type Limited<S> = Spillgate<Forward, S>;

pub(super) struct ProxyService<S: Store> {
    client: Arc<Client>,
    limited: Limited<S>,
}

impl<S: Store> ProxyService<S> {
    pub(super) fn new(client: &Arc<Client>, layer: &SpillgateLayer<S>) -> Self {
        let address = client.sender.address;
        // Once per connection: an extension per request would cost more.
        let layer = layer.clone().peer_from(move |_| Some(address));
        Self { client: Arc::clone(client), limited: layer.layer(Forward(Arc::clone(client))) }
    }
}

impl<S: Store> Service<Request<Incoming>> for ProxyService<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture<S>;

    fn call(&self, mut request: Request<Incoming>) -> ResponseFuture<S> {
        let in_progress = Some(Activity::begin_request(Arc::clone(&self.client.activity)));
        let validated = request::validate(&request, &self.client.limits);
        let over_http1 = request.version() != Version::HTTP_2;
        let may_switch = request::may_switch(request.headers());
        let from = match validated {
            Ok(()) => {
                // Here, so that limits and upstreams see the same host.
                host::to_origin_form(&mut request);
                From::Limited(self.limited.clone().call(request))
            }
            Err(problem) => From::Refused(Some(refuse(problem, request.version()))),
        };
        ResponseFuture {
            from,
            in_progress,
            over_http1,
            may_switch,
            client: Arc::clone(&self.client),
        }
    }
}

fn refuse(problem: Problem, version: Version) -> Response<Body> {
    let mut response = problem.response();
    if version != Version::HTTP_2 {
        // The next request may be part of an attack.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

pub(super) struct ResponseFuture<S: Store> {
    from: From<S>,
    in_progress: Option<InProgress<Arc<Activity>>>,
    over_http1: bool,
    /// The request offered to switch protocols, so it is unknown whether HTTP follows.
    may_switch: bool,
    client: Arc<Client>,
}

enum From<S: Store> {
    Limited(<Limited<S> as tower_service::Service<Request<Incoming>>>::Future),
    Refused(Option<Response<Body>>),
}

impl<S: Store> Future for ResponseFuture<S> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = match &mut self.from {
            From::Limited(limited) => ready!(Pin::new(limited).poll(context)),
            From::Refused(refused) => {
                let refused = refused.take().unwrap_or_else(|| Response::new(Body::from("")));
                Ok(refused.map(ResponseBody::from))
            }
        };
        let in_progress = self.in_progress.take();
        Poll::Ready(answered.map(|mut response| {
            let has_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            let is_last = self.may_switch || self.client.drain.is_draining();
            if self.over_http1 && is_last && !has_switched {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            let status = response.status();
            response.map(|body| {
                let (body, permits) = body.into_parts();
                match in_progress {
                    Some(held) => {
                        body.hold(ResponseGuard::new(&self.client, status, held, permits))
                    }
                    None => body,
                }
            })
        }))
    }
}

impl<S: Store> Clone for ProxyService<S> {
    fn clone(&self) -> Self {
        Self { client: Arc::clone(&self.client), limited: self.limited.clone() }
    }
}

impl<S: Store> fmt::Debug for ProxyService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyService").field("client", &self.client).finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Debug for ResponseFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
