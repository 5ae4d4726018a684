//! Requests over HTTP/2, each in its own task: a client may read some responses and not others, so
//! the connection does not show whether it is blocked.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use hyper::rt::Executor;
use tokio::time::sleep;

/// Spawns tasks on behalf of the current one. A server whose store schedules by task passes on which
/// client a task works for.
pub trait Spawn: Clone + Send + Sync + 'static {
    /// Spawns a task.
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static);
}

/// By [`tokio::spawn`].
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioSpawn;

impl Spawn for TokioSpawn {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(future);
    }
}

/// Runs requests until they are answered, or the client has not read its response in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams<X> {
    pub(super) io_timeout: Duration,
    pub(super) spawn: X,
}

impl<F: Future<Output = ()> + Send + 'static, X: Spawn> Executor<F> for Streams<X> {
    fn execute(&self, request: F) {
        let (delivery, io_timeout) = (Arc::<Delivery>::default(), self.io_timeout);
        self.spawn.spawn(async move {
            tokio::select! {
                biased;
                () = DELIVERY.scope(Arc::clone(&delivery), request) => {}
                // The stream is reset, and the connection to the upstream closed.
                () = stalled(io_timeout, || delivery.due()) => {}
            }
        });
    }
}

tokio::task_local! {
    static DELIVERY: Arc<Delivery>;
}

/// Whether a client reads its response.
#[derive(Debug, Default)]
struct Delivery {
    pieces: AtomicU64,
    is_due: AtomicBool,
}

// Relaxed throughout: it is only sampled.
impl Delivery {
    /// hyper asked for more, so what came before was sent.
    fn note(&self, is_piece: bool) {
        self.is_due.store(is_piece, Ordering::Relaxed);
        self.pieces.fetch_add(u64::from(is_piece), Ordering::Relaxed);
    }

    /// The number of pieces, if the last is not sent yet.
    fn due(&self) -> Option<u64> {
        let is_due = self.is_due.load(Ordering::Relaxed);
        is_due.then(|| self.pieces.load(Ordering::Relaxed))
    }
}

/// Splits a response into pieces so small that a client which reads at all reads a whole one in time.
#[derive(Debug)]
pub(super) struct Pieces {
    delivery: Arc<Delivery>,
    rest: Bytes,
}

/// The default maximum frame size of HTTP/2.
const PIECE: usize = 16 * 1024;

impl Pieces {
    /// Those of the request of this task; `None` if the task serves the whole connection.
    pub(super) fn of_task() -> Option<Self> {
        let delivery = DELIVERY.try_with(Arc::clone).ok()?;
        Some(Self { delivery, rest: Bytes::new() })
    }

    /// The next piece: of the rest, or else of `more`.
    pub(super) fn next<E>(
        &mut self,
        more: impl FnOnce() -> Poll<Option<Result<Frame<Bytes>, E>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let polled = match std::mem::take(&mut self.rest) {
            rest if rest.is_empty() => more(),
            rest => Poll::Ready(Some(Ok(Frame::data(rest)))),
        };
        let polled = polled.map_ok(|frame| self.cut(frame));
        self.delivery.note(matches!(polled, Poll::Ready(Some(Ok(_)))));
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

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Ready when `progress` has been the same for `limit`, within a tenth of that. While it is
/// `None`, nothing is expected.
pub(super) async fn stalled(limit: Duration, progress: impl Fn() -> Option<u64>) {
    const SAMPLES: u32 = 10;
    let (mut seen, mut same) = (None, 0);
    while same < SAMPLES {
        sleep(limit / SAMPLES).await;
        let now = progress();
        same = if now.is_some() && now == seen { same + 1 } else { 0 };
        seen = now;
    }
}
