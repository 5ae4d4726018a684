//! Connections over HTTP/1.1, each for one request at a time.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response, Uri};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::body::Source;
use super::connect::Speaks;
use super::deadline::{Deadline, HeadWait};
use super::{Answered, Timeouts, Unanswered, Upstream};
use crate::body::RequestBody;
use crate::failure::Failure;
use spillgate_net::MaybeTls;

/// A connection, driven by its holder.
#[derive(Debug)]
pub(crate) struct Http1 {
    sender: SendRequest<RequestBody>,
    /// Boxed, since it is large and moved around.
    connection: Box<Connection<TokioIo<MaybeTls>, RequestBody>>,
    has_ended: bool,
    pub(super) deadline: Deadline,
    /// When it was returned to the pool.
    pub(super) idle_since: Instant,
}

/// Sends a request over a pooled connection, or else over a new one.
pub(super) async fn send(
    upstream: &Upstream,
    mut request: Request<RequestBody>,
) -> Result<Answered, Unanswered> {
    let mut may_reuse = true;
    loop {
        let pooled = if may_reuse {
            poll_fn(|context| Poll::Ready(upstream.pool.take(context))).await
        } else {
            None
        };
        let is_reused = pooled.is_some();
        let mut connection = match pooled {
            Some(pooled) => pooled,
            None => match connect(upstream).await {
                Ok(connection) => connection,
                Err(why) => return Err(Unanswered::unsent(why, request)),
            },
        };
        // The upstream may be closing it right now.
        let retry = if is_reused { RetryCopy::of(&request) } else { None };
        let body = request.body().progress().cloned();
        match (connection.send(request, &upstream.timeouts).await, retry) {
            (Ok(response), _) => {
                let source = Source::Http1(connection);
                return Ok(Answered { response, source, request: body });
            }
            (Err(Unanswered { unsent: Some(unsent), .. }), _) if is_reused => request = *unsent,
            (Err(Unanswered { why: Failure::Broken(error), .. }), Some(retry))
                if is_gone(&error) =>
            {
                // Others of that age are probably closed, too.
                may_reuse = false;
                request = retry.request();
            }
            (Err(unanswered), _) => return Err(unanswered),
        }
    }
}

async fn connect(upstream: &Upstream) -> Result<Http1, Failure> {
    let Upstream { connector, url, timeouts, health, .. } = upstream;
    let connected = connector.connect(url, Speaks::Http1, timeouts).await;
    let (link, _) = connected.inspect_err(|_| health.failed())?;
    health.connected();
    Http1::new(link, timeouts).await
}

/// True if the upstream closed the connection before it answered.
pub(super) fn is_gone(error: &hyper::Error) -> bool {
    error.is_incomplete_message() || error.is_closed() || error.is_canceled() || is_reset(error)
}

fn is_reset(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|error| {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
        [BrokenPipe, ConnectionReset].contains(&error.kind())
    })
}

impl Http1 {
    pub(super) async fn new(link: MaybeTls, timeouts: &Timeouts) -> Result<Self, Failure> {
        let handshake = Builder::new().handshake(TokioIo::new(link)).await;
        let (sender, connection) = handshake.map_err(Failure::Broken)?;
        let (deadline, idle_since) = (Deadline::new(timeouts.response), Instant::now());
        let connection = Box::new(connection);
        Ok(Self { sender, connection, has_ended: false, deadline, idle_since })
    }

    pub(super) async fn send(
        &mut self,
        mut request: Request<RequestBody>,
        timeouts: &Timeouts,
    ) -> Result<Response<Incoming>, Unanswered> {
        if request.body().size_hint().exact().is_none() {
            // Otherwise hyper sends a GET without its body.
            request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let Self { sender, connection, has_ended, deadline, .. } = self;
        let body = request.body().progress().cloned();
        let mut wait = HeadWait::new(deadline, timeouts, body.clone());
        let mut response = pin!(sender.try_send_request(request));
        poll_fn(|context| {
            if !*has_ended {
                *has_ended = connection.poll_without_shutdown(context).is_ready();
            }
            match response.as_mut().poll(context) {
                Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
                Poll::Ready(Err(error)) => Poll::Ready(Err(Unanswered::of(error, body.as_ref()))),
                Poll::Pending => wait.poll(context).map(|why| Err(why.into())),
            }
        })
        .await
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) {
        if !self.has_ended {
            self.has_ended = self.connection.poll_without_shutdown(context).is_ready();
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.has_ended && self.sender.is_ready()
    }

    /// The stream, and the bytes read from it after the last response, once the protocol has switched.
    pub(crate) async fn into_stream(mut self) -> (MaybeTls, Bytes) {
        poll_fn(|context| {
            self.poll(context);
            if self.has_ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let parts = self.connection.into_parts();
        (parts.io.into_inner(), parts.read_buf)
    }
}

pub(super) struct RetryCopy {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl RetryCopy {
    /// A copy of an idempotent request without a body. Methods are case-sensitive: `get` is not known
    /// to be idempotent.
    pub(super) fn of(request: &Request<RequestBody>) -> Option<Self> {
        let may_retry = request.method().is_idempotent() && request.body().is_end_stream();
        may_retry.then(|| Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
        })
    }

    pub(super) fn request(self) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::default());
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        request
    }
}
