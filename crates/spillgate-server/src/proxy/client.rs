//! One client: which HTTP it speaks, and how long it may take.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use spillgate_policy::Gate;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Proxy;
use super::guard::Guard;
use super::request::Sender;
use super::service::Inlet;
use super::streams::Streams;
use super::upgrade::{Upgrade, relay};
use crate::protocol::http::{Bounds, Pulse, Stream, Watch};
use crate::{AnyStore, App, Readiness};

/// What the requests of a client share.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) proxy: Arc<Proxy>,
    pub(super) gate: Arc<Gate<AnyStore>>,
    pub(super) sender: Sender,
    pub(super) pulse: Arc<Pulse>,
    pub(super) upgrade: Upgrade,
    pub(super) bounds: Bounds,
    pub(super) readiness: Arc<Readiness>,
}

type ClientStream<T> = Stream<Arc<Pulse>, T>;

/// Passes on what a client asks, until it leaves, breaks the protocol or is silent for too
/// long, or until `shutdown` is ready: then the requests in hand are still answered. While the
/// server is draining, it is told to make no more.
///
/// # Errors
///
/// If the stream fails, or the client breaks the protocol.
pub(crate) async fn serve<T>(
    io: T,
    peer: SocketAddr,
    is_secure: bool,
    app: &App,
    proxy: &Arc<Proxy>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _open = proxy.stats.open();
    let sender = Sender::new(peer.ip(), is_secure).ok_or_else(|| io::Error::other("no address"))?;
    let pulse = Pulse::of_task();
    let client = Arc::new(Client {
        proxy: Arc::clone(proxy),
        gate: Arc::clone(app.gate()),
        sender,
        pulse: Arc::clone(&pulse),
        upgrade: Upgrade::default(),
        bounds: app.bounds,
        readiness: Arc::clone(app.readiness()),
    });
    let inlet = Inlet::new(&client, app.layer());
    let mut stream = Stream::new(io, pulse);
    let mut watch = Watch::new(&app.bounds);
    let mut shutdown = pin!(shutdown);
    let is_http2 = tokio::select! {
        biased;
        // What has arrived is still answered.
        is_http2 = begins_http2(&mut stream) => is_http2?,
        () = shutdown.as_mut() => return Ok(()),
        () = watch.run_out(&client.pulse) => return Ok(()),
    };
    let conversation = Conversation { client, inlet, watch };
    match is_http2 {
        true => conversation.http2(stream, shutdown).await,
        false => conversation.http1(stream, shutdown).await,
    }
}

/// What every connection over HTTP/2 begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Looks whether a client speaks HTTP/2. What was read for that is read again.
async fn begins_http2(
    stream: &mut ClientStream<impl AsyncRead + AsyncWrite + Unpin>,
) -> io::Result<bool> {
    let mut begin = Vec::with_capacity(4096);
    loop {
        let is_end = stream.read_buf(&mut begin).await? == 0;
        let length = begin.len().min(PREFACE.len());
        let is_same = begin[..length] == PREFACE[..length];
        if is_end || !is_same || length == PREFACE.len() {
            stream.unread(&begin);
            return Ok(is_same && length == PREFACE.len());
        }
    }
}

/// What is said to a client, and how long it may take.
struct Conversation {
    client: Arc<Client>,
    inlet: Inlet,
    watch: Watch,
}

impl Conversation {
    async fn http1<T: AsyncRead + AsyncWrite + Unpin>(
        self,
        stream: ClientStream<T>,
        shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<()> {
        let Self { client, inlet, mut watch } = self;
        let stream = TokioIo::new(Guard::new(stream, Arc::clone(&client.pulse)));
        let mut connection = builder(&client.bounds).serve_connection(stream, inlet);
        let ended = tokio::select! {
            biased;
            ended = drive(&mut connection, shutdown) => ended,
            () = watch.run_out(&client.pulse) => return Ok(()),
        };
        let parts = connection.into_parts();
        let mut stream = parts.io.into_inner().into_inner();
        if let (Ok(()), Some(upstream)) = (&ended, client.upgrade.take()) {
            let idle = client.proxy.state.load().settings.upgrade_idle;
            let _switched = client.proxy.stats.switched();
            let _at_work = Pulse::work(&*client.pulse);
            return relay(stream, parts.read_buf, upstream, idle).await;
        }
        if ended.as_ref().is_err_and(hyper::Error::is_parse) {
            client.proxy.stats.refused();
        }
        if !ended.as_ref().is_err_and(hyper::Error::is_user) {
            // That this is the end: with TLS, anyone could have cut the connection. A response
            // that broke off has none.
            let _ = timeout(FAREWELL, stream.shutdown()).await;
        }
        stream.close().await;
        ended.map_err(io::Error::other)
    }

    async fn http2<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        mut self,
        stream: ClientStream<T>,
        shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<()> {
        let mut builder = http2::Builder::new(Streams { stalled: self.client.bounds.stalled });
        builder
            .max_header_list_size(u32::try_from(self.client.bounds.head).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS)
            .max_send_buf_size(SEND_BUFFER);
        let connection = builder.serve_connection(TokioIo::new(stream), self.inlet);
        let mut connection = pin!(connection);
        let pulse = &self.client.pulse;
        pulse.takes_frames();
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.client.readiness.goaway(pulse) => {}
            ended = connection.as_mut() => return ended.map_err(io::Error::other),
            () = self.watch.run_out(pulse) => {}
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            // First, so that the client is told.
            biased;
            ended = connection => ended.map_err(io::Error::other),
            () = self.watch.run_out(pulse) => Ok(()),
        }
    }
}

type Http1Connection<T> = http1::Connection<TokioIo<Guard<ClientStream<T>>>, Inlet>;

fn builder(bounds: &Bounds) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_headers(bounds.headers)
        .max_header_size(bounds.head)
        // As much of a body as is passed on at once; less than 8 KiB is a panic.
        .max_buf_size(bounds.head.max(64 * 1024));
    builder
}

/// Serves a client until it leaves, or until the server is about to end and what has arrived
/// is answered. The stream is left open.
async fn drive<T: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Http1Connection<T>,
    shutdown: Pin<&mut impl Future<Output = ()>>,
) -> hyper::Result<()> {
    tokio::select! {
        // Shutdown first: a busy client would never let it have its turn.
        biased;
        () = shutdown => {}
        ended = run(connection) => return ended,
    }
    // The runtime may have seen a request arrive that this task has not.
    tokio::task::yield_now().await;
    if let Some(ended) = run(connection).now_or_never() {
        return ended;
    }
    Pin::new(&mut *connection).graceful_shutdown();
    run(connection).await
}

async fn run<T: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Http1Connection<T>,
) -> hyper::Result<()> {
    poll_fn(|context| connection.poll_without_shutdown(context)).await
}

/// How long a client may take to let itself be told that there is nothing more.
const FAREWELL: Duration = Duration::from_secs(1);

/// How many requests a client may have under way over HTTP/2. Others use about as many.
const STREAMS: u32 = 128;

/// How much of each response may lie here that a client of HTTP/2 does not take.
const SEND_BUFFER: usize = 64 * 1024;
