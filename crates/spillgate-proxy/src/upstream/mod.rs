//! Upstreams: load balancing, health and connections.

mod balance;
mod body;
mod connect;
mod deadline;
mod health;
mod http1;
mod http2;
mod limit;
mod pool;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::response::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use spillgate::adaptive::{AdaptivePermit, AdaptiveStatus};
use spillgate::{Clock, SystemClock};
use spillgate_enforce::LatencyHistogram;
use spillgate_tower::ServiceLatency;

pub(super) use self::balance::Upstreams;
use self::body::Source;
pub(super) use self::body::UpstreamBody;
use self::connect::Connector;
use self::health::Health;
pub(super) use self::http1::Http1;
use self::http2::Http2;
use self::limit::UpstreamLimit;
use self::pool::Pool;
use super::body::{Progress, RequestBody};
use super::failure::Failure;
use super::response;
use crate::settings::{Scheme, UpstreamUrl};

/// How long an upstream, or a client, may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    connect: Duration,
    /// Until the head of a response.
    response: Duration,
    /// Between two parts of a body.
    idle: Duration,
}

#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) url: UpstreamUrl,
    timeouts: Timeouts,
    connector: Connector,
    pool: Pool,
    http2: Http2,
    health: Health,
    /// Shared with upstreams of the same URL in earlier settings, whose requests may go on.
    in_flight: Arc<AtomicUsize>,
    /// Shared likewise.
    limit: Arc<UpstreamLimit>,
    /// Shared likewise: how long it takes until the head of a response.
    latency: Arc<LatencyHistogram>,
    cut: AtomicU64,
}

/// Upper bounds of latencies in seconds.
static LATENCIES: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// A request without a response.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) why: Failure,
    /// The request, if the upstream has received nothing of it.
    pub(super) unsent: Option<Box<Request<RequestBody>>>,
}

impl Unanswered {
    /// From hyper's error. If the request's own body failed, it is the client's fault.
    fn of(mut error: TrySendError<Request<RequestBody>>, body: Option<&Arc<Progress>>) -> Self {
        let unsent = error.take_message().map(Box::new);
        let why = match body.is_some_and(|body| body.has_failed()) {
            true => Failure::ClientBroke,
            false => Failure::Broken(error.into_error()),
        };
        Self { why, unsent }
    }

    fn unsent(why: Failure, request: Request<RequestBody>) -> Self {
        Self { why, unsent: Some(Box::new(request)) }
    }
}

impl From<Failure> for Unanswered {
    fn from(why: Failure) -> Self {
        Self { why, unsent: None }
    }
}

pub(super) struct Answered {
    pub(super) response: Response<Incoming>,
    source: Source,
    request: Option<Arc<Progress>>,
}

impl Answered {
    /// Refuses a response that is ambiguous.
    pub(super) fn validated(self) -> Result<Self, Unanswered> {
        response::validate(&self.response)?;
        Ok(self)
    }

    /// What the policy's adaptive limits are to learn, if that is not the time since the decision: the
    /// client may have taken its time to send its body.
    pub(super) fn service_latency(&self) -> Option<ServiceLatency> {
        let body = self.request.as_ref().filter(|body| body.notes_end())?;
        // However long it took, a failure is one.
        let is_failure = self.response.status().is_server_error();
        (!is_failure).then(|| ServiceLatency(body.latency(SystemClock.now())))
    }

    /// The head of a response without a body, and the connection, if it is not shared.
    pub(super) fn into_connection(self) -> Option<(Parts, Http1)> {
        match self.source {
            Source::Http1(connection) => Some((self.response.into_parts().0, connection)),
            Source::Http2(_) => None,
        }
    }
}

impl Upstream {
    pub(super) async fn send(
        &self,
        request: Request<RequestBody>,
        upgrades: bool,
    ) -> Result<Answered, Unanswered> {
        let begin = SystemClock.now();
        let answered = match self.url.scheme {
            Scheme::H2c => self.http2.send(self, request).await,
            // Only HTTP/1.1 has `Upgrade`.
            Scheme::Https if !upgrades && !self.http2.is_refused() => {
                self.http2.send(self, request).await
            }
            Scheme::Http | Scheme::Https => http1::send(self, request).await,
        };
        if answered.is_ok() {
            self.latency.observe(SystemClock.now().since(begin));
        }
        answered
    }

    /// How long it takes until the head of a response, the time included in which the client
    /// sends its body.
    pub(super) fn latency(&self) -> &Arc<LatencyHistogram> {
        &self.latency
    }

    /// Counts a request as in flight for as long as the result lives; `None` if there are as many
    /// as there may be.
    fn begin(self: &Arc<Self>, most: Option<usize>) -> Option<InFlight> {
        // Relaxed: a count orders nothing, and is never above the bound by itself.
        match most {
            None => drop(self.in_flight.fetch_add(1, Ordering::Relaxed)),
            Some(most) => {
                let one_more = |count: usize| (count < most).then(|| count + 1);
                let relaxed = Ordering::Relaxed;
                self.in_flight.fetch_update(relaxed, relaxed, one_more).ok()?;
            }
        }
        Some(InFlight { upstream: Arc::clone(self), permit: None })
    }

    pub(super) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// Where its adaptive limit is; `None` if it has none.
    pub(super) fn limit_status(&self) -> Option<AdaptiveStatus> {
        self.limit.status()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// A request that an upstream has not answered to the end.
#[derive(Debug)]
pub(super) struct InFlight {
    upstream: Arc<Upstream>,
    /// Of the upstream's adaptive limit.
    permit: Option<AdaptivePermit>,
}

impl InFlight {
    /// Tells the upstream's adaptive limit how an attempt ended.
    pub(super) fn record(&mut self, answered: &Result<Answered, Unanswered>) {
        if let Some(permit) = &mut self.permit {
            limit::record(permit, answered);
        }
    }

    /// The connection has switched protocols: whether it is idle or busy, its latency is unknown.
    pub(super) fn release_limit(&mut self) {
        self.permit = None;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.upstream.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
