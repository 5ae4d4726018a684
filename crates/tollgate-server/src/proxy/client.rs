//! One client: which HTTP it speaks, and how long it may take.

use std::future::{Future, poll_fn, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tollgate_policy::Gate;

use super::Proxy;
use super::guard::Guard;
use super::request::Sender;
use super::service::Inlet;
use super::upgrade::{Upgrade, relay};
use crate::http::{Bounds, Pulse, Stream, Watch};
use crate::{AnyStore, App};

/// What the requests of a client share.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) proxy: Arc<Proxy>,
    pub(super) gate: Arc<Gate<AnyStore>>,
    pub(super) sender: Sender,
    pub(super) pulse: Arc<Pulse>,
    pub(super) upgrade: Upgrade,
}

type ClientStream<T> = Stream<Arc<Pulse>, T>;

/// Passes on what a client asks, until it leaves, breaks the protocol or is silent for too
/// long, or until `shutdown` is ready: then the requests in hand are still answered.
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
    let pulse = Arc::new(Pulse::default());
    let client = Arc::new(Client {
        proxy: Arc::clone(proxy),
        gate: Arc::clone(app.gate()),
        sender,
        pulse: Arc::clone(&pulse),
        upgrade: Upgrade::default(),
    });
    let inlet = Inlet::new(&client, app.layer());
    let mut stream = Stream::new(io, pulse);
    let mut watch = Watch::new(&app.bounds);
    let mut shutdown = pin!(shutdown);
    let is_http2 = tokio::select! {
        biased;
        () = shutdown.as_mut() => return Ok(()),
        is_http2 = begins_http2(&mut stream) => is_http2?,
        () = watch.run_out(&client.pulse) => return Ok(()),
    };
    let conversation = Conversation { client, inlet, bounds: &app.bounds, watch };
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
struct Conversation<'a> {
    client: Arc<Client>,
    inlet: Inlet,
    bounds: &'a Bounds,
    watch: Watch,
}

impl Conversation<'_> {
    async fn http1<T: AsyncRead + AsyncWrite + Unpin>(
        mut self,
        stream: ClientStream<T>,
        shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<()> {
        let head = self.bounds.head;
        let mut builder = http1::Builder::new();
        builder
            .max_headers(self.bounds.headers)
            .max_header_size(head)
            // Less is a panic.
            .max_buf_size(head.max(64 * 1024));
        let mut connection = builder.serve_connection(TokioIo::new(Guard::new(stream)), self.inlet);
        let pulse = &self.client.pulse;
        let ended = tokio::select! {
            // Shutdown first: a busy client would never let it have its turn.
            biased;
            () = shutdown => None,
            ended = poll_fn(|context| connection.poll_without_shutdown(context)) => Some(ended),
            () = self.watch.run_out(pulse) => return Ok(()),
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                // The runtime may have seen a request arrive that this task has not.
                tokio::task::yield_now().await;
                tokio::select! {
                    biased;
                    ended = poll_fn(|context| connection.poll_without_shutdown(context)) => ended,
                    () = ready(()) => {
                        Pin::new(&mut connection).graceful_shutdown();
                        tokio::select! {
                            ended = poll_fn(|context| connection.poll_without_shutdown(context)) => ended,
                            () = self.watch.run_out(pulse) => return Ok(()),
                        }
                    }
                }
            }
        };
        let parts = connection.into_parts();
        let stream = parts.io.into_inner().into_inner();
        if let (Ok(()), Some(upstream)) = (&ended, self.client.upgrade.take()) {
            let idle = self.client.proxy.state.load().settings.upgrade_idle;
            let _switched = self.client.proxy.stats.switched();
            return relay(stream, parts.read_buf, upstream, idle).await;
        }
        if ended.as_ref().is_err_and(hyper::Error::is_parse) {
            self.client.proxy.stats.refused();
        }
        stream.close().await;
        ended.map_err(io::Error::other)
    }

    async fn http2<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        mut self,
        stream: ClientStream<T>,
        shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<()> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .max_header_list_size(u32::try_from(self.bounds.head).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS);
        let connection = builder.serve_connection(TokioIo::new(stream), self.inlet);
        let mut connection = pin!(connection);
        let pulse = &self.client.pulse;
        tokio::select! {
            biased;
            () = shutdown => {}
            ended = connection.as_mut() => return ended.map_err(io::Error::other),
            () = self.watch.run_out(pulse) => {}
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            ended = connection => ended.map_err(io::Error::other),
            () = self.watch.run_out(pulse) => Ok(()),
        }
    }
}

/// How many requests a client may have under way over HTTP/2. Others use about as many.
const STREAMS: u32 = 128;
