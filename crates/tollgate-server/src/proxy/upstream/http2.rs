//! A connection over HTTP/2, shared by all requests.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use http::uri::Parts;
use http::{Request, Uri, header};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::Mutex;

use super::body::Source;
use super::connect::Speaks;
use super::http1::Http1;
use super::link::Link;
use super::patience::{HeadWait, Patience};
use super::{Answered, Unanswered, Upstream};
use crate::config::Scheme;
use crate::proxy::body::RequestBody;
use crate::proxy::failure::Failure;
use crate::proxy::request::name_host;

/// The connection, as long as there is one.
#[derive(Debug, Default)]
pub(super) struct Http2 {
    /// Held while connecting: whoever comes meanwhile waits for the same connection.
    sender: Mutex<Option<SendRequest<RequestBody>>>,
    /// The upstream has chosen HTTP/1.1.
    is_refused: AtomicBool,
}

/// What a request is sent over.
enum Way {
    /// The connection that there was.
    Shared(SendRequest<RequestBody>),
    /// A connection that all share from now on.
    New(SendRequest<RequestBody>),
    /// A connection over HTTP/1.1.
    Own(Http1),
}

impl Http2 {
    /// True if the upstream speaks HTTP/1.1 only.
    pub(super) fn is_refused(&self) -> bool {
        // Relaxed: whoever does not see it finds out as the first did.
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Sends a request, and waits for the head of its response.
    pub(super) async fn send(
        &self,
        upstream: &Upstream,
        mut request: Request<RequestBody>,
    ) -> Result<Answered, Unanswered> {
        loop {
            match self.way(upstream).await {
                Ok(Way::Shared(sender)) => match send(upstream, sender, request).await {
                    // The upstream has closed it, and may well accept another.
                    Err(Unanswered { unsent: Some(unsent), .. }) => request = *unsent,
                    answered => return answered,
                },
                Ok(Way::New(sender)) => return send(upstream, sender, request).await,
                Ok(Way::Own(mut connection)) => {
                    let body = request.body().progress().cloned();
                    let response = connection.send(request, &upstream.times).await?;
                    let source = Source::Http1(connection);
                    return Ok(Answered { response, source, request: body });
                }
                Err(why) => return Err(Unanswered::unsent(why, request)),
            }
        }
    }

    async fn way(&self, upstream: &Upstream) -> Result<Way, Failure> {
        let mut shared = self.sender.lock().await;
        if let Some(sender) = shared.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(Way::Shared(sender.clone()));
        }
        let Upstream { connector, url, times, health, .. } = upstream;
        let connected = connector.connect(url, Speaks::Any, times).await;
        let (link, speaks_http2) = connected.inspect_err(|_| health.failed())?;
        health.connected();
        if !speaks_http2 {
            self.is_refused.store(true, Ordering::Relaxed);
            return Http1::new(link, times).await.map(Way::Own);
        }
        let sender = handshake(link).await?;
        *shared = Some(sender.clone());
        Ok(Way::New(sender))
    }
}

async fn handshake(link: Link) -> Result<SendRequest<RequestBody>, Failure> {
    let handshake = Builder::new(TokioExecutor::new()).handshake(TokioIo::new(link)).await;
    let (sender, connection) = handshake.map_err(Failure::Broken)?;
    // It ends with its last request, and when the upstream closes it.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

async fn send(
    upstream: &Upstream,
    mut sender: SendRequest<RequestBody>,
    mut request: Request<RequestBody>,
) -> Result<Answered, Unanswered> {
    name_target(upstream, &mut request);
    let body = request.body().progress().cloned();
    let mut patience = Patience::new(upstream.times.response);
    let mut wait = HeadWait::new(&mut patience, &upstream.times, body.clone());
    let mut response = pin!(sender.try_send_request(request));
    let answered = poll_fn(|context| match response.as_mut().poll(context) {
        Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
        Poll::Ready(Err(error)) => Poll::Ready(Err(Unanswered::of(error, body.as_ref()))),
        Poll::Pending => wait.poll(context).map(|why| Err(why.into())),
    })
    .await;
    match answered {
        Ok(response) => Ok(Answered { response, source: Source::Http2(patience), request: body }),
        Err(mut unanswered) => {
            // Whoever is asked next may speak HTTP/1.1.
            if let Some(mut unsent) = unanswered.unsent.take() {
                let mut uri = std::mem::take(unsent.uri_mut());
                name_host(&mut uri, unsent.headers_mut());
                *unsent.uri_mut() = uri;
                unanswered.unsent = Some(unsent);
            }
            Err(unanswered)
        }
    }
}

/// Says whom a request is for, as HTTP/2 does: in its target.
fn name_target(upstream: &Upstream, request: &mut Request<RequestBody>) {
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
