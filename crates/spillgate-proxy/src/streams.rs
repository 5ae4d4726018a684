//! Requests of a client that speaks HTTP/2, each in a task of its own.
//!
//! Such a client may take some responses and leave others, so the connection does not tell
//! whether it is stuck, as it does with HTTP/1.1.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use hyper::rt::Executor;

use super::stall_timeout::stalled;

/// Spawns tasks that work for the current one. A server whose store goes by the current task
/// passes on whom a task works for.
pub trait Spawn: Clone + Send + Sync + 'static {
    /// Spawns a task.
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static);
}

/// Tokio's own way.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioSpawn;

impl Spawn for TokioSpawn {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(future);
    }
}

/// Carries out requests until they are answered, or the client has not read its response for
/// so long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams<X> {
    pub(super) io_timeout: Duration,
    pub(super) spawn: X,
}

impl<F: Future<Output = ()> + Send + 'static, X: Spawn> Executor<F> for Streams<X> {
    fn execute(&self, request: F) {
        let (taking, io_timeout) = (Arc::<Taking>::default(), self.io_timeout);
        self.spawn.spawn(async move {
            tokio::select! {
                biased;
                () = TAKING.scope(Arc::clone(&taking), request) => {}
                // The stream is reset, and the connection to the upstream closed.
                () = stalled(io_timeout, || taking.due()) => {}
            }
        });
    }
}

tokio::task_local! {
    static TAKING: Arc<Taking>;
}

/// Whether a client takes what it is sent.
#[derive(Debug, Default)]
struct Taking {
    pieces: AtomicU64,
    is_due: AtomicBool,
}

// Relaxed throughout: it is looked at now and then.
impl Taking {
    /// More was asked for, so that what came before has been taken.
    fn note(&self, is_piece: bool) {
        self.is_due.store(is_piece, Ordering::Relaxed);
        self.pieces.fetch_add(u64::from(is_piece), Ordering::Relaxed);
    }

    /// How many pieces there were, if the last is yet to be taken.
    fn due(&self) -> Option<u64> {
        let is_due = self.is_due.load(Ordering::Relaxed);
        is_due.then(|| self.pieces.load(Ordering::Relaxed))
    }
}

/// Hands over a response in pieces so small that whoever takes any takes a whole one in time.
#[derive(Debug)]
pub(super) struct Pieces {
    taking: Arc<Taking>,
    rest: Bytes,
}

/// As much as most clients take in one frame.
const PIECE: usize = 16 * 1024;

impl Pieces {
    /// Those of the request that this task carries out; `None` if it carries out others, too.
    pub(super) fn of_task() -> Option<Self> {
        let taking = TAKING.try_with(Arc::clone).ok()?;
        Some(Self { taking, rest: Bytes::new() })
    }

    /// The next piece: of what there is, or else of `more`.
    pub(super) fn next<E>(
        &mut self,
        more: impl FnOnce() -> Poll<Option<Result<Frame<Bytes>, E>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let polled = match std::mem::take(&mut self.rest) {
            rest if rest.is_empty() => more(),
            rest => Poll::Ready(Some(Ok(Frame::data(rest)))),
        };
        let polled = polled.map_ok(|frame| self.cut(frame));
        self.taking.note(matches!(polled, Poll::Ready(Some(Ok(_)))));
        polled
    }

    fn cut(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_data() {
            Ok(mut bytes) => {
                self.rest = bytes.split_off(bytes.len().min(PIECE));
                Frame::data(bytes)
            }
            Err(trailers) => trailers,
        }
    }

    /// True if nothing of the last is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
