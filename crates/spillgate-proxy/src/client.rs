//! The connection of one client: which HTTP it speaks, and how long it may take.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use spillgate_net::{Activity, Connection, DrainSignal, IdleTimeout, MaybeTls, Shutdown, Stream};
use spillgate_policy::store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::framing::Guard;
use super::request::Sender;
use super::service::ProxyService;
use super::streams::{Spawn, Streams};
use super::trailers::PolicyView;
use super::upgrade::{Switched, Upgrade, relay};
use super::{ClientLimits, Proxy, ProxyProtocol};

/// What the requests of a client share.
pub(super) struct Client {
    pub(super) proxy: Arc<Proxy>,
    pub(super) policy: Arc<dyn PolicyView>,
    pub(super) sender: Sender,
    pub(super) activity: Arc<Activity>,
    pub(super) upgrade: Upgrade,
    pub(super) limits: ClientLimits,
    pub(super) drain: Arc<DrainSignal>,
}

type ClientStream = Stream<Arc<Activity>, MaybeTls>;

/// Forwards the requests of a client until it disconnects, violates the protocol or times out, or
/// until `shutdown` is ready: then requests in progress are still answered. While the server is
/// draining, the client is asked to connect elsewhere. Fails if the stream fails, or the client violates the protocol.
pub(super) async fn serve<S: Store, X: Spawn>(
    protocol: &ProxyProtocol<S, X>,
    connection: Connection,
    mut shutdown: Shutdown<'_>,
) -> io::Result<()> {
    let Connection { io, peer, .. } = connection;
    let sender = Sender::new(peer.ip(), io.has_tls());
    let sender = sender.ok_or_else(|| io::Error::other("invalid peer address"))?;
    let (activity, limits) = (Activity::current(), protocol.limits);
    let client = Arc::new(Client {
        proxy: Arc::clone(&protocol.proxy),
        policy: Arc::clone(protocol.layer.gate()) as Arc<dyn PolicyView>,
        sender,
        activity: Arc::clone(&activity),
        upgrade: Upgrade::default(),
        limits,
        drain: Arc::clone(&protocol.drain),
    });
    let service = ProxyService::new(&client, &protocol.layer);
    let mut stream = Stream::new(io, activity);
    let mut timeout = IdleTimeout::new(limits.io_timeout, limits.idle_timeout);
    let is_http2 = tokio::select! {
        biased;
        // What has arrived is still answered.
        is_http2 = begins_http2(&mut stream) => is_http2?,
        () = shutdown.as_mut() => return Ok(()),
        () = timeout.expired(&client.activity) => return Ok(()),
    };
    let connection = ClientConnection { client, service, timeout };
    match is_http2 {
        true => connection.http2(stream, shutdown, protocol.spawn.clone()).await,
        false => connection.http1(stream, shutdown).await,
    }
}

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Detects HTTP/2. What was read for that is put back.
async fn begins_http2(stream: &mut ClientStream) -> io::Result<bool> {
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

struct ClientConnection<S: Store> {
    client: Arc<Client>,
    service: ProxyService<S>,
    timeout: IdleTimeout,
}

impl<S: Store> ClientConnection<S> {
    async fn http1(self, stream: ClientStream, shutdown: Shutdown<'_>) -> io::Result<()> {
        let Self { client, service, timeout: mut idle_timeout } = self;
        let stream = TokioIo::new(Guard::new(stream, Arc::clone(&client.activity)));
        let mut connection = builder(&client.limits).serve_connection(stream, service);
        let ended = tokio::select! {
            biased;
            ended = drive(&mut connection, shutdown) => ended,
            () = idle_timeout.expired(&client.activity) => return Ok(()),
        };
        let parts = connection.into_parts();
        let mut stream = parts.io.into_inner().into_inner();
        if let (Ok(()), Some(switched)) = (&ended, client.upgrade.take()) {
            let Switched { connection: upstream, in_flight, permits } = switched;
            // Until the upgraded connection is closed.
            let _held = (in_flight, permits);
            let idle = client.proxy.state.load().settings.upgrade_idle_timeout;
            let _switched = client.proxy.stats.switched();
            let _in_progress = Activity::begin_request(&*client.activity);
            return relay(stream, parts.read_buf, upstream, idle).await;
        }
        if ended.as_ref().is_err_and(hyper::Error::is_parse) {
            client.proxy.stats.refused();
        }
        if !ended.as_ref().is_err_and(hyper::Error::is_user) {
            // Prevents truncation with TLS. A response that broke off has no clean end.
            let _ = timeout(CLOSE_TIMEOUT, stream.shutdown()).await;
        }
        stream.close().await;
        ended.map_err(io::Error::other)
    }

    async fn http2(
        mut self,
        stream: ClientStream,
        shutdown: Shutdown<'_>,
        spawn: impl Spawn,
    ) -> io::Result<()> {
        let limits = &self.client.limits;
        let mut builder = http2::Builder::new(Streams { io_timeout: limits.io_timeout, spawn });
        builder
            .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS)
            .max_send_buf_size(SEND_BUFFER);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), self.service));
        let activity = &self.client.activity;
        activity.set_multiplexed();
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.client.drain.goaway(activity) => {}
            ended = connection.as_mut() => return ended.map_err(io::Error::other),
            () = self.timeout.expired(activity) => {}
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            // First, so that GOAWAY is sent.
            biased;
            ended = connection => ended.map_err(io::Error::other),
            () = self.timeout.expired(activity) => Ok(()),
        }
    }
}

type Http1Connection<S> = http1::Connection<TokioIo<Guard<ClientStream>>, ProxyService<S>>;

fn builder(limits: &ClientLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_headers(limits.max_headers)
        .max_header_size(limits.max_header_bytes)
        // As much of a body as is forwarded at once; less than 8 KiB is a panic.
        .max_buf_size(limits.max_header_bytes.max(64 * 1024));
    builder
}

/// Serves a client until it disconnects, or until the server stops and what has arrived is
/// answered. The stream is left open.
async fn drive<S: Store>(
    connection: &mut Http1Connection<S>,
    shutdown: Shutdown<'_>,
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

async fn run<S: Store>(connection: &mut Http1Connection<S>) -> hyper::Result<()> {
    poll_fn(|context| connection.poll_without_shutdown(context)).await
}

/// How long the end of the stream (`close_notify` of TLS) may take to be sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Concurrent requests per connection over HTTP/2. Others allow about as many.
const STREAMS: u32 = 128;

/// Bytes of each response that a client over HTTP/2 has not read.
const SEND_BUFFER: usize = 64 * 1024;

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("sender", &self.sender).finish_non_exhaustive()
    }
}
