use std::convert::Infallible;
use std::future::{Future, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use http::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spillgate_net::{Activity, IdleTimeout, Stream};
use tokio::io::{AsyncRead, AsyncWrite};

use super::events::ReplyBody;
use super::fast::{Fast, Left};
use super::request_reader::RequestReader;
use super::{Bounds, HttpServer, service};

/// Serves HTTP/1.1 until the client disconnects, violates the protocol or times out, or until
/// `shutdown` is ready: then the current request is still answered. While the server is draining,
/// every response closes its connection. Set `TCP_NODELAY` before.
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
        // Boxed: most connections make no other requests.
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

/// Serves requests of any kind, with hyper.
struct Anything<'s> {
    server: &'s HttpServer,
    peer: Option<IpAddr>,
    activity: &'s Activity,
}

impl Anything<'_> {
    /// Serves one request. True if another may follow.
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

    /// True if neither the server nor the client ends the connection.
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
            Ok::<_, Infallible>(ReplyBody::of(reply))
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
        // For clients that shut down their side after the request.
        .half_close(true)
        .max_headers(bounds.headers)
        .max_header_size(bounds.head)
        // Less is a panic.
        .max_buf_size(bounds.head.max(8 * 1024));
    builder
}
