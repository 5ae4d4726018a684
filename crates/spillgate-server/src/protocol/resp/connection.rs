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
use super::wire::{Turn, Wire};
use super::{Endpoint, Timeouts};

/// Speaks with one client until it leaves, breaks the protocol or is silent for too long,
/// or until `shutdown` is ready.
///
/// Requests are carried out in order, and replies to all that were read together are sent
/// together. A client that does not read its replies is not read from either, and holds
/// nothing but itself, unless [many](Endpoint::buffers) do so: then it may be closed. At
/// `shutdown` all that has been received is still answered.
///
/// Set `TCP_NODELAY` on a socket before.
///
/// # Errors
///
/// If the stream fails.
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
                let Some(next) = connection.look() else {
                    return Ok(());
                };
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
    /// How much of the input has been carried out in this batch.
    used: usize,
    session: Session,
    /// What whoever looks at the connection from outside sees.
    activity: Arc<Activity>,
    /// The memory that all of this takes.
    held: Held<'e>,
    /// Whole requests wait until replies are read.
    held_back: bool,
    /// Since when the client is waited for.
    since: Instant,
    /// How much had been sent when that was last looked at.
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
            self.endpoint.stats.evicted();
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

    /// Ends the connection once the client has its replies.
    async fn finish(&mut self) -> io::Result<()> {
        timeout(self.endpoint.timeouts.stalled, self.wire.finish()).await?
    }

    /// Waits for the client to close too, as long as it still sends: else the system would
    /// tell it that the connection broke, and replies under way might be lost.
    async fn linger(&mut self, longest: Duration) {
        // What a client may have under way before it sees the end.
        const BYTES: usize = 1024 * 1024;
        // It has its replies, and that is all that matters.
        let _ = timeout(longest, self.wire.ignore(BYTES)).await;
    }

    /// Ends a connection that broke the protocol.
    async fn reject(&mut self, error: ProtocolError) -> io::Result<()> {
        if error == ProtocolError::Foreign {
            // Not a word: whatever is behind it reads our replies as something else.
            self.endpoint.stats.foreign();
            return Ok(());
        }
        self.endpoint.stats.protocol_error();
        self.wire.out.error(format_args!("ERR {error}"));
        self.finish().await?;
        self.linger(Duration::from_secs(1)).await;
        Ok(())
    }

    /// How often the connection is looked at.
    fn patience(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(60 * 60);
        let Timeouts { idle, stalled } = self.endpoint.timeouts;
        idle.min(stalled).min(LONGEST)
    }

    /// When to look at the connection again; `None` if it has been waited for too long.
    ///
    /// Looking now and then costs nothing while a client is busy, as a timer for each
    /// request would.
    fn look(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.sent != self.wire.sent() {
            self.sent = self.wire.sent();
            self.since = now;
        }
        // Strangers could take all the places, and keep them by saying nothing.
        let is_idle =
            self.session.is_authenticated && self.wire.input.is_empty() && self.wire.backlog() == 0;
        let Timeouts { idle, stalled } = self.endpoint.timeouts;
        let allowed = if is_idle { idle } else { stalled };
        let left = allowed.saturating_sub(now.duration_since(self.since));
        (!left.is_zero()).then(|| now + left.min(self.patience()))
    }
}
