use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::RecvStream;
use h2::server::{Builder, Connection, SendResponse};
use http::Request;
use spillgate_net::{Activity, IdleTimeout, Stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::GrpcServer;
use super::call::{Call, CallFuture};
use super::{MESSAGE, STREAMS, WINDOW};

/// Serves gRPC until the client disconnects, violates the protocol or times out, or until the
/// server is draining or `shutdown` is ready: then its calls are still answered. Set `TCP_NODELAY`
/// before.
pub async fn serve<T>(
    io: T,
    peer: Option<SocketAddr>,
    server: &GrpcServer,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let activity = &*Activity::current();
    activity.set_multiplexed();
    let mut stream = Stream::new(io, activity);
    let served =
        converse(&mut stream, peer.map(|peer| peer.ip()), server, activity, shutdown).await;
    stream.close().await;
    served.map_err(|error| match error.is_io() {
        true => error.into_io().unwrap_or_else(|| io::ErrorKind::Other.into()),
        false => io::Error::other(error),
    })
}

async fn converse<T>(
    stream: &mut Stream<&Activity, T>,
    peer: Option<IpAddr>,
    server: &GrpcServer,
    activity: &Activity,
    shutdown: impl Future<Output = ()>,
) -> Result<(), h2::Error>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut idle_timeout = IdleTimeout::new(server.bounds.stalled, server.bounds.idle);
    let mut shutdown = pin!(shutdown);
    let connection = tokio::select! {
        biased;
        () = &mut shutdown => return Ok(()),
        connection = builder(server).handshake(stream) => connection?,
        () = idle_timeout.expired(activity) => return Ok(()),
    };
    let mut session = Session {
        connection,
        peer,
        server,
        activity,
        fresh: Vec::new(),
        pending: FuturesUnordered::new(),
    };
    tokio::select! {
        // Shutdown first: a busy client would never let it have its turn.
        biased;
        () = shutdown => {}
        () = server.app.readiness().drain_signal().goaway(activity) => {}
        ended = poll_fn(|context| session.poll(context)) => return ended,
        () = idle_timeout.expired(activity) => {}
    }
    // Sends GOAWAY; calls in flight are answered.
    session.connection.graceful_shutdown();
    let leave = poll_fn(|context| session.poll(context));
    timeout(server.bounds.stalled, leave).await.unwrap_or(Ok(()))
}

fn builder(server: &GrpcServer) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(server.bounds.head).unwrap_or(u32::MAX))
        .initial_window_size(MESSAGE as u32)
        .initial_connection_window_size(WINDOW)
        .max_send_buffer_size(MESSAGE);
    builder
}

struct Session<'s, T> {
    connection: Connection<T, Bytes>,
    peer: Option<IpAddr>,
    server: &'s GrpcServer,
    activity: &'s Activity,
    /// Calls that have arrived since the last were answered.
    fresh: Vec<(Request<RecvStream>, SendResponse<Bytes>)>,
    pending: FuturesUnordered<CallFuture<'s>>,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Session<'_, T> {
    /// Answers calls until the connection ends. All that have arrived are accepted before the first
    /// is answered, since `poll_accept` also writes.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            loop {
                match self.connection.poll_accept(context) {
                    Poll::Ready(Some(call)) => self.fresh.push(call?),
                    Poll::Ready(None) => return Poll::Ready(Ok(())),
                    Poll::Pending => break,
                }
            }
            let mut is_idle = self.fresh.is_empty();
            for (request, respond) in self.fresh.drain(..) {
                let call = Call::new(self.server, self.peer, self.activity, request, respond);
                self.pending.extend(call.begin());
            }
            while let Poll::Ready(Some(())) = self.pending.poll_next_unpin(context) {
                is_idle = false;
            }
            if is_idle {
                return Poll::Pending;
            }
        }
    }
}
