use std::convert::Infallible;
use std::future::{Future, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::fast::{self, Left};
use super::pulse::Pulse;
use super::stream::Stream;
use super::watch::Watch;
use super::{Bounds, service};
use crate::App;

/// Speaks HTTP/1.1 with one client until it leaves, breaks the protocol or is silent for
/// too long, or until `shutdown` is ready: then the request in hand is still answered.
///
/// Set `TCP_NODELAY` on a socket before.
///
/// # Errors
///
/// If the stream fails, or the client breaks the protocol.
pub async fn serve<T>(
    io: T,
    peer: Option<SocketAddr>,
    app: &App,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let _open = app.stats.open();
    let pulse = &*Pulse::of_task();
    let mut watch = Watch::new(&app.bounds);
    let mut stream = Stream::new(io, pulse);
    let mut shutdown = pin!(shutdown);
    let left = fast::serve(&mut stream, pulse, app, &mut watch, shutdown.as_mut()).await;
    let mut anything = Anything { app, peer: peer.map(|peer| peer.ip()), pulse };
    let ended = match left {
        Ok(Left::Other) => anything.serve(&mut stream, &mut watch, shutdown).await,
        Ok(Left::Shutdown) => anything.serve(&mut stream, &mut watch, ready(())).await,
        Ok(Left::End) => Ok(()),
        Err(error) => Err(error),
    };
    stream.close().await;
    ended
}

/// Answers requests of any kind.
struct Anything<'s> {
    app: &'s App,
    peer: Option<IpAddr>,
    pulse: &'s Pulse,
}

impl Anything<'_> {
    async fn serve<T: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut Stream<&Pulse, T>,
        watch: &mut Watch,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let Self { app, peer, pulse } = *self;
        let answer = service_fn(async |request| {
            let _at_work = Pulse::work(pulse);
            Ok::<_, Infallible>(service::answer(app, peer, request).await)
        });
        let stream = TokioIo::new(stream);
        let mut connection = pin!(builder(&app.bounds).serve_connection(stream, answer));
        tokio::select! {
            // Shutdown first: a busy client would never let it have its turn.
            biased;
            () = shutdown => {}
            ended = connection.as_mut() => return ended.map_err(io::Error::other),
            () = watch.run_out(pulse) => return Ok(()),
        }
        // The runtime may have seen a request arrive that this task has not.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            ended = connection.as_mut() => return ended.map_err(io::Error::other),
            () = ready(()) => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            ended = connection => ended.map_err(io::Error::other),
            () = watch.run_out(pulse) => Ok(()),
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
