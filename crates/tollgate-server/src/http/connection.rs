use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep};

use super::pulse::{Pulse, Waiting};
use super::stream::Stream;
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
    let pulse = Pulse::default();
    let mut stream = Stream::new(io, &pulse);
    let peer = peer.map(|peer| peer.ip());
    let ended = converse(&mut stream, &pulse, peer, app, shutdown).await;
    stream.close().await;
    ended
}

async fn converse<T>(
    stream: &mut Stream<'_, T>,
    pulse: &Pulse,
    peer: Option<IpAddr>,
    app: &App,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let answer = service_fn(async |request| {
        let _at_work = pulse.work();
        Ok::<_, Infallible>(service::answer(app, peer, request).await)
    });
    let stream = TokioIo::new(stream);
    let mut connection = pin!(builder(&app.bounds).serve_connection(stream, answer));
    let mut shutdown = pin!(shutdown);
    let mut is_leaving = false;
    let mut watch = Watch::new(&app.bounds);
    let mut look = pin!(sleep(watch.patience));
    loop {
        tokio::select! {
            // Shutdown first: a busy client would never let it have its turn.
            biased;
            () = &mut shutdown, if !is_leaving => {
                is_leaving = true;
                // The runtime may have seen a request arrive that this task has not.
                tokio::task::yield_now().await;
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => return ended.map_err(io::Error::other),
                    () = std::future::ready(()) => {}
                }
                connection.as_mut().graceful_shutdown();
            }
            ended = connection.as_mut() => return ended.map_err(io::Error::other),
            () = &mut look => {
                let Some(next) = watch.look(pulse.waiting()) else { return Ok(()) };
                look.as_mut().reset(next);
            }
        }
    }
}

fn builder(bounds: &Bounds) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        // For those who send a request and say that it is the last.
        .half_close(true)
        .pipeline_flush(true)
        .max_headers(bounds.headers)
        .max_header_size(bounds.head)
        // Less is a panic.
        .max_buf_size(bounds.head.max(8 * 1024));
    builder
}

/// Waits for a client no longer than it may take.
///
/// Looking now and then costs nothing while a client is busy, as a timer for each request
/// would.
struct Watch {
    patience: Duration,
    stalled: Duration,
    idle: Duration,
    seen: Waiting,
    since: Instant,
}

impl Watch {
    fn new(bounds: &Bounds) -> Self {
        const LONGEST: Duration = Duration::from_secs(60 * 60);
        // Often enough that nobody has a fourth more time than he should.
        let patience = (bounds.stalled / 4).min(bounds.idle).min(LONGEST);
        let (stalled, idle) = (bounds.stalled, bounds.idle);
        Self { patience, stalled, idle, seen: Waiting::Request(0), since: Instant::now() }
    }

    /// When to look again; `None` if the client has been waited for too long.
    fn look(&mut self, waiting: Waiting) -> Option<Instant> {
        let now = Instant::now();
        if self.seen != waiting {
            (self.seen, self.since) = (waiting, now);
        }
        let allowed = match waiting {
            Waiting::Nothing => return Some(now + self.patience),
            Waiting::Request(_) => self.idle,
            Waiting::Rest(_) | Waiting::Reading(_) => self.stalled,
        };
        let left = allowed.saturating_sub(now.duration_since(self.since));
        (!left.is_zero()).then(|| now + left.min(self.patience))
    }
}
