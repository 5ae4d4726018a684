//! A connection over HTTP/2, shared by all requests.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use http::uri::Parts;
use http::{Request, Uri, header};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::body::Source;
use super::connect::Speaks;
use super::deadline::{Deadline, HeadWait};
use super::http1::{self, Http1, RetryCopy};
use super::pool::KEPT;
use super::{Answered, Unanswered, Upstream};
use crate::body::RequestBody;
use crate::failure::Failure;
use crate::host;
use crate::settings::Scheme;
use spillgate_net::MaybeTls;

/// The connection, while there is one.
#[derive(Debug, Default)]
pub(super) struct Http2 {
    /// Locked while connecting: other requests wait for the same connection.
    shared: Mutex<Option<Shared>>,
    /// The upstream has chosen HTTP/1.1.
    is_refused: AtomicBool,
}

/// A connection that requests share.
#[derive(Clone, Debug)]
struct Shared {
    sender: SendRequest<RequestBody>,
    /// A request timed out. The network path may be dead, which TCP notices after a quarter of an
    /// hour.
    has_stalled: Arc<AtomicBool>,
    used: Instant,
}

enum Route {
    /// The shared one, which existed.
    Shared(Shared),
    /// The shared one, just made.
    New(Shared),
    /// A new one over HTTP/1.1.
    Own(Http1),
    /// Any over HTTP/1.1, as another request has just learned.
    Http1,
}

impl Http2 {
    /// True if the upstream speaks only HTTP/1.1.
    pub(super) fn is_refused(&self) -> bool {
        // Relaxed: a request that misses it negotiates again.
        self.is_refused.load(Ordering::Relaxed)
    }

    pub(super) async fn send(
        &self,
        upstream: &Upstream,
        mut request: Request<RequestBody>,
    ) -> Result<Answered, Unanswered> {
        let mut may_retry = true;
        loop {
            match self.route(upstream).await {
                Ok(Route::Shared(shared)) => {
                    let retry = if may_retry { RetryCopy::of(&request) } else { None };
                    match (shared.send(upstream, request).await, retry) {
                        // The upstream has closed it, and may accept another.
                        (Err(Unanswered { unsent: Some(unsent), .. }), _) => request = *unsent,
                        (Err(Unanswered { why: Failure::Broken(error), .. }), Some(retry))
                            if is_gone(&error) =>
                        {
                            may_retry = false;
                            request = retry.request();
                        }
                        (answered, _) => return answered,
                    }
                }
                Ok(Route::New(shared)) => return shared.send(upstream, request).await,
                Ok(Route::Own(mut connection)) => {
                    let body = request.body().progress().cloned();
                    let response = connection.send(request, &upstream.timeouts).await?;
                    let source = Source::Http1(connection);
                    return Ok(Answered { response, source, request: body });
                }
                Ok(Route::Http1) => return http1::send(upstream, request).await,
                Err(why) => return Err(Unanswered::unsent(why, request)),
            }
        }
    }

    async fn route(&self, upstream: &Upstream) -> Result<Route, Failure> {
        let Upstream { connector, url, timeouts, health, .. } = upstream;
        // Bounded, since requests before this one may fail to connect one after the other.
        let shared = timeout(timeouts.connect, self.shared.lock()).await;
        let mut shared = shared.map_err(|_| Failure::ConnectTimeout)?;
        if let Some(shared) = shared.as_mut().filter(|shared| shared.is_usable()) {
            shared.used = Instant::now();
            return Ok(Route::Shared(shared.clone()));
        }
        if self.is_refused() {
            return Ok(Route::Http1);
        }
        let connected = connector.connect(url, Speaks::Any, timeouts).await;
        let (link, speaks_http2) = connected.inspect_err(|_| health.failed())?;
        health.connected();
        if !speaks_http2 {
            self.is_refused.store(true, Ordering::Relaxed);
            return Http1::new(link, timeouts).await.map(Route::Own);
        }
        let (sender, used) = (handshake(link).await?, Instant::now());
        let new = Shared { sender, has_stalled: Arc::default(), used };
        *shared = Some(new.clone());
        Ok(Route::New(new))
    }
}

/// Bytes of a response that its client has not read yet.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Bytes of all responses: so many that clients who do not read block no others.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

async fn handshake(link: MaybeTls) -> Result<SendRequest<RequestBody>, Failure> {
    let handshake = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(TokioIo::new(link))
        .await;
    let (sender, connection) = handshake.map_err(Failure::Broken)?;
    // It ends with its last request, or when the upstream closes it.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// True if the upstream closed the connection, or refused the stream, before it answered.
fn is_gone(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    let is_said = source.is_some_and(|error: &h2::Error| {
        error.is_io() || error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM)
    });
    is_said || http1::is_gone(error)
}

impl Shared {
    fn is_usable(&self) -> bool {
        // Relaxed: a request that sees it late times out as the one before.
        let has_stalled = self.has_stalled.load(Ordering::Relaxed);
        !self.sender.is_closed() && !has_stalled && self.used.elapsed() < KEPT
    }

    async fn send(
        mut self,
        upstream: &Upstream,
        mut request: Request<RequestBody>,
    ) -> Result<Answered, Unanswered> {
        set_authority(upstream, &mut request);
        let body = request.body().progress().cloned();
        let mut deadline = Deadline::new(upstream.timeouts.response);
        let mut wait = HeadWait::new(&mut deadline, &upstream.timeouts, body.clone());
        let mut response = pin!(self.sender.try_send_request(request));
        let answered = poll_fn(|context| match response.as_mut().poll(context) {
            Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(Unanswered::of(error, body.as_ref()))),
            Poll::Pending => wait.poll(context).map(|why| Err(why.into())),
        })
        .await;
        answered
            .map(|response| Answered { response, source: Source::Http2(deadline), request: body })
            .map_err(|unanswered| {
                if matches!(unanswered.why, Failure::UpstreamStalled) {
                    self.has_stalled.store(true, Ordering::Relaxed);
                }
                restored(unanswered)
            })
    }
}

/// Restores the origin-form, since the next upstream may speak HTTP/1.1.
fn restored(mut unanswered: Unanswered) -> Unanswered {
    if let Some(unsent) = &mut unanswered.unsent {
        host::to_origin_form(unsent);
    }
    unanswered
}

/// Moves `Host` to the target (`:authority` of HTTP/2).
fn set_authority(upstream: &Upstream, request: &mut Request<RequestBody>) {
    let host = request.headers_mut().remove(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()?.parse().ok());
    let mut parts = Parts::default();
    let is_secure = upstream.url.scheme == Scheme::Https;
    parts.scheme = Some(if is_secure { http::uri::Scheme::HTTPS } else { http::uri::Scheme::HTTP });
    parts.authority = Some(host.unwrap_or_else(|| upstream.url.authority.clone()));
    parts.path_and_query = request.uri().path_and_query().cloned();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}
