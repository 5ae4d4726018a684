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
use spillgate_redis::inherit_client;

use super::silence::silence;

/// Carries out requests until they are answered, or what a client is sent was not taken for
/// so long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) stalled: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, request: F) {
        let (taking, stalled) = (Arc::<Taking>::default(), self.stalled);
        // Requests of one client, wherever they are carried out.
        tokio::spawn(inherit_client(async move {
            tokio::select! {
                biased;
                () = TAKING.scope(Arc::clone(&taking), request) => {}
                // The client is told that this is no end, and the upstream is left.
                () = silence(stalled, || taking.due()) => {}
            }
        }));
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
