use std::convert::Infallible;
use std::future::{Future, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use http::header::{CONNECTION, HeaderValue};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spillgate_net::{Activity, IdleTimeout, Stream};
use tokio::io::{AsyncRead, AsyncWrite};

use super::fast::{Fast, Left};
use super::request_reader::RequestReader;
use super::{Bounds, HttpServer, service};

/// Speaks HTTP/1.1 with one client until it leaves, breaks the protocol or is silent for
/// too long, or until `shutdown` is ready: then the request in hand is still answered. While
/// the server is draining, every response is the last of its connection.
///
/// Set `TCP_NODELAY` on a socket before.
///
/// # Errors
///
/// If the stream fails, or the client breaks the protocol.
pub async fn serve<T>(
    io: T,
    peer: Option<SocketAddr>,
    server: &HttpServer,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let activity = &*Activity::current();
    let mut idle_timeout = IdleTimeout::new(server.bounds.stalled, server.bounds.idle);
    let mut stream = Stream::new(io, activity);
    let mut shutdown = pin!(shutdown);
    let peer = peer.map(|peer| peer.ip());
    let fast = Fast { server, peer, activity };
    let anything = Anything { server, peer, activity };
    let ended = loop {
        // In boxes: most connections are never asked for anything else.
        let is_kept = match fast.serve(&mut stream, &mut idle_timeout, shutdown.as_mut()).await {
            Ok(Left::Other) => {
                Box::pin(anything.serve(&mut stream, &mut idle_timeout, shutdown.as_mut())).await
            }
            Ok(Left::Shutdown) => {
                Box::pin(anything.serve(&mut stream, &mut idle_timeout, ready(()))).await
            }
            Ok(Left::End) => Ok(false),
            Err(error) => Err(error),
        };
        if !matches!(is_kept, Ok(true)) {
            break is_kept.map(drop);
        }
    };
    stream.close().await;
    ended
}

/// Answers requests of any kind.
struct Anything<'s> {
    server: &'s HttpServer,
    peer: Option<IpAddr>,
    activity: &'s Activity,
}

impl Anything<'_> {
    /// Answers one request, and tells whether another may follow.
    async fn serve<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut Stream<&Activity, T>,
        idle_timeout: &mut IdleTimeout,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<bool> {
        let mut request = RequestReader::new(stream);
        let goes_on = self.answer(&mut request, idle_timeout, shutdown).await?;
        Ok(goes_on && request.is_kept())
    }

    /// Tells whether the server goes on, and the client.
    async fn answer<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        request: &mut RequestReader<'_, '_, T>,
        idle_timeout: &mut IdleTimeout,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<bool> {
        let Self { server, peer, activity } = *self;
        let answer = service_fn(async |request| {
            let _in_progress = Activity::begin_request(activity);
            let mut reply = service::answer(server, peer, request).await;
            if server.app.readiness().is_draining() {
                reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(reply.map(Full::new))
        });
        let stream = TokioIo::new(request);
        let mut connection = pin!(builder(&server.bounds).serve_connection(stream, answer));
        tokio::select! {
            // Shutdown first: a busy client would never let it have its turn.
            biased;
            () = shutdown => {}
            ended = connection.as_mut() => return ended.map(|()| true).map_err(io::Error::other),
            () = idle_timeout.expired(activity) => return Ok(false),
        }
        // The runtime may have seen a request arrive that this task has not.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            ended = connection.as_mut() => return ended.map(|()| false).map_err(io::Error::other),
            () = ready(()) => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            ended = connection => ended.map(|()| false).map_err(io::Error::other),
            () = idle_timeout.expired(activity) => Ok(false),
        }
    }
}

fn builder(bounds: &Bounds) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        // For those who send a request and say that it is the last.
        .half_close(true)
        .max_headers(bounds.headers)
        .max_header_size(bounds.head)
        // Less is a panic.
        .max_buf_size(bounds.head.max(8 * 1024));
    builder
}
