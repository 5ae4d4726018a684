use std::future::{Future, poll_fn, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use spillgate_net::Activity;
use spillgate_policy::store::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};

use super::budget::Held;
use super::codec::ProtocolError;
use super::execute::{Flow, execute};
use super::pipeline::pipeline;
use super::read_ahead::{AHEAD, ReadAhead};
use super::session::Session;
use super::stats::add;
use super::wire::{Turn, Wire};
use super::{Endpoint, Timeouts};

/// Serves one client until it disconnects, violates the protocol or times out, or until `shutdown`
/// is ready: then everything received is still answered.
///
/// Requests are executed in order, and replies to those read together are sent together. A client
/// that does not read its replies is not read from (backpressure), and may be closed if
/// [many](Endpoint::buffers) do so. Set `TCP_NODELAY` before.
pub async fn serve<T, S>(
    io: T,
    peer: Option<SocketAddr>,
    endpoint: &Endpoint<S>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Store,
{
    let mut connection = Connection::new(io, peer, endpoint);
    let mut shutdown = pin!(shutdown);
    let mut look = pin!(sleep(connection.patience()));
    loop {
        tokio::select! {
            // Shutdown first: a busy client would never let it have its turn.
            biased;
            () = &mut shutdown => return connection.leave().await,
            turn = connection.turn() => match turn? {
                Turn::End => return connection.finish().await,
                Turn::Evicted => return Ok(()),
                Turn::Ready => {}
            },
            () = &mut look => {
                let Some(next) = connection.look() else { return Ok(()) };
                look.as_mut().reset(next);
                continue;
            }
        }
        match connection.batch().await {
            Ok(Flow::Continue | Flow::Wait) => {}
            Ok(Flow::Close) => return connection.finish().await,
            Err(error) => return connection.reject(error).await,
        }
    }
}

struct Connection<'e, T, S: Store> {
    endpoint: &'e Endpoint<S>,
    wire: Wire<T>,
    read_ahead: ReadAhead,
    /// Bytes of the input executed in this batch.
    used: usize,
    session: Session,
    activity: Arc<Activity>,
    held: Held<'e>,
    /// Complete requests wait until replies are read.
    held_back: bool,
    /// When waiting for the client began.
    since: Instant,
    /// Bytes sent at the last look.
    sent: u64,
}

impl<'e, T, S> Connection<'e, T, S>
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Store,
{
    fn new(io: T, peer: Option<SocketAddr>, endpoint: &'e Endpoint<S>) -> Self {
        Self {
            endpoint,
            wire: Wire::new(io),
            read_ahead: ReadAhead::default(),
            used: 0,
            session: endpoint.session(peer),
            activity: Activity::current(),
            held: endpoint.budget.open(),
            held_back: false,
            since: Instant::now(),
            sent: 0,
        }
    }

    /// Sends replies, and waits for requests.
    async fn turn(&mut self) -> io::Result<Turn> {
        let was_silent = self.wire.input.is_empty();
        let turn = poll_fn(|context| {
            let most = self.endpoint.backlog();
            let turn = self.wire.poll_turn(context, most, self.held_back);
            // Replies may have been read, whatever is waited for now.
            self.count_memory();
            self.activity.record_sent((self.wire.backlog() == 0).then_some(0));
            match turn {
                Poll::Pending if self.held.is_too_much() => Poll::Ready(Ok(Turn::Evicted)),
                turn => turn,
            }
        });
        let turn = turn.await?;
        if turn == Turn::Evicted {
            add(&self.endpoint.stats.evicted, 1);
        }
        if was_silent {
            // A request has so long to arrive from its first byte, however slowly.
            self.since = Instant::now();
        }
        Ok(turn)
    }

    /// Carries out the requests that are whole, as long as there is room for replies.
    async fn batch(&mut self) -> Result<Flow, ProtocolError> {
        let in_progress = Activity::begin_request(Arc::clone(&self.activity));
        let done = loop {
            let batch = self.next_batch().await;
            self.count_memory();
            match batch {
                Ok(None) => {}
                Ok(Some(flow)) => break Ok(flow),
                Err(error) => break Err(error),
            }
        };
        drop(in_progress);
        self.endpoint.stats.report(std::mem::take(&mut self.session.tally));
        self.held_back = done == Ok(Flow::Wait);
        if self.held_back {
            self.read_ahead.restart();
        }
        let used = std::mem::take(&mut self.used);
        if used > 0 {
            self.wire.take(used);
            if self.wire.input.is_empty() {
                self.read_ahead.shrink();
            } else {
                // The next request has begun to arrive.
                self.since = Instant::now();
            }
            self.count_memory();
        }
        if !self.wire.input.is_empty() {
            self.activity.record_read();
        }
        done
    }

    /// Executes the next batch of requests. `None` if there may be more.
    async fn next_batch(&mut self) -> Result<Option<Flow>, ProtocolError> {
        let Self { endpoint, wire: Wire { input, out, .. }, read_ahead, session, used, .. } = self;
        let unused = &input[*used..];
        let batch = if session.is_authenticated {
            read_ahead.read(unused, &endpoint.limits, AHEAD)
        } else {
            // The next request may be the one that gives the password.
            read_ahead.read(unused, &endpoint.limits.of_strangers(), 1)
        };
        let requests = || read_ahead.requests(unused, batch.count);
        if batch.count > 1 && endpoint.concurrency() > 1 {
            let requests: Vec<_> = requests().collect();
            // In a box: every connection has room for what it may wait for.
            let ended = Box::pin(pipeline(endpoint, session, &requests, used, out)).await;
            if ended.is_some() {
                return Ok(ended);
            }
        } else {
            if batch.count > 1 {
                let calls =
                    requests().map(|request| request.args).filter(|args| args.is(0, "cl.throttle"));
                endpoint.enforcer.gate().prefetch(calls.map(|args| args.at(1)));
            }
            for request in requests() {
                if out.bytes().len() >= endpoint.backlog() {
                    return Ok(Some(Flow::Wait));
                }
                *used += request.length;
                if execute(endpoint, session, request.args, out).await == Flow::Close {
                    return Ok(Some(Flow::Close));
                }
            }
        }
        match batch.error {
            Some(error) => Err(error),
            None => Ok((batch.count == 0).then_some(Flow::Continue)),
        }
    }

    /// Counts the memory that the connection takes now.
    fn count_memory(&mut self) {
        let transaction = self.session.transaction.as_ref();
        let transaction = transaction.map_or(0, |transaction| transaction.memory());
        self.held.set(self.wire.memory() + self.read_ahead.memory() + transaction);
    }

    /// Answers what has been received, and ends.
    async fn leave(&mut self) -> io::Result<()> {
        // As many batches as a client may have sent before it could know.
        const LAST: usize = 64;
        // The runtime may have seen bytes arrive that this task has not.
        tokio::task::yield_now().await;
        let mut is_busy = false;
        for _ in 0..LAST {
            let turn = tokio::select! {
                biased;
                turn = self.turn() => turn?,
                () = ready(()) => break,
            };
            if turn == Turn::Evicted {
                return Ok(());
            }
            is_busy = true;
            match self.batch().await {
                Ok(Flow::Continue | Flow::Wait) if turn == Turn::Ready => {}
                Ok(_) => break,
                Err(error) => return self.reject(error).await,
            }
        }
        self.finish().await?;
        if is_busy {
            self.linger(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    async fn finish(&mut self) -> io::Result<()> {
        timeout(self.endpoint.timeouts.stalled, self.wire.finish()).await?
    }

    /// Waits for the client to close, too: otherwise the connection is reset, and replies in flight
    /// may be lost.
    async fn linger(&mut self, longest: Duration) {
        // What a client may send before it sees the end.
        const BYTES: usize = 1024 * 1024;
        // Best effort: the client has its replies.
        let _ = timeout(longest, self.wire.ignore(BYTES)).await;
    }

    /// Ends a connection that broke the protocol.
    async fn reject(&mut self, error: ProtocolError) -> io::Result<()> {
        if error == ProtocolError::Foreign {
            // No reply: it would be taken for something else.
            add(&self.endpoint.stats.foreign, 1);
            return Ok(());
        }
        add(&self.endpoint.stats.protocol_errors, 1);
        self.wire.out.error(format_args!("ERR {error}"));
        self.finish().await?;
        self.linger(Duration::from_secs(1)).await;
        Ok(())
    }

    fn patience(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(60 * 60);
        let Timeouts { idle, stalled } = self.endpoint.timeouts;
        idle.min(stalled).min(LONGEST)
    }

    /// When to look again; `None` if the client timed out. Cheaper than a timer per request.
    fn look(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.sent != self.wire.sent() {
            self.sent = self.wire.sent();
            self.since = now;
        }
        // Otherwise silent clients could take all connections without authentication.
        let is_idle =
            self.session.is_authenticated && self.wire.input.is_empty() && self.wire.backlog() == 0;
        let Timeouts { idle, stalled } = self.endpoint.timeouts;
        let allowed = if is_idle { idle } else { stalled };
        let left = allowed.saturating_sub(now.duration_since(self.since));
        (!left.is_zero()).then(|| now + left.min(self.patience()))
    }
}
