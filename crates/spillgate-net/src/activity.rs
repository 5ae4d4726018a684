use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Context;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;
use tokio::task::futures::TaskLocalFuture;
use tokio::task_local;

task_local! {
    /// That of the connection which a task serves.
    static CURRENT: Arc<Activity>;
}

/// What a connection is doing, for [timeouts](crate::IdleTimeout) and
/// [slots](crate::ConnectionSlots). Atomic, since the connection's task may move between threads.
#[derive(Debug, Default)]
pub struct Activity {
    requests: AtomicU64,
    in_progress: AtomicU64,
    /// Bytes were read since the last request began.
    has_read: AtomicBool,
    /// What was read ends within the request after the one that began.
    is_ahead: AtomicBool,
    /// Bytes need not belong to a request, such as frames of HTTP/2.
    is_multiplexed: AtomicBool,
    sent: AtomicU64,
    /// The client does not read what is to be sent.
    is_blocked: AtomicBool,
    /// How often everything was flushed.
    flushes: AtomicU64,
    /// Notified at the first request.
    first: Notify,
    /// The connection is to close unless a request arrives.
    close_requested: AtomicBool,
    /// The task to wake for that. It is smaller than a [`Notify`], and there are many.
    waker: AtomicWaker,
}

/// What the server waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Nothing: the client waits for the server.
    Nothing,
    /// The next request, after so many.
    Request(u64),
    /// The rest of a request, after so many.
    RestOfRequest(u64),
    /// The client to read on, after so many bytes.
    ClientToRead(u64),
}

// Relaxed throughout: a value that is seen late is seen in time.
impl Activity {
    /// Makes this the [current](Self::current) one of a connection's task.
    pub fn scope<F: Future>(activity: Arc<Self>, task: F) -> TaskLocalFuture<Arc<Self>, F> {
        CURRENT.scope(activity, task)
    }

    /// That of the connection which this task serves, or a new one outside of any listener.
    #[must_use]
    pub fn current() -> Arc<Self> {
        CURRENT.try_with(Arc::clone).unwrap_or_default()
    }

    /// True if the client has yet to send its first request, or the rest of one.
    pub(crate) fn awaits_request(&self) -> bool {
        matches!(self.waiting(), Waiting::Request(0) | Waiting::RestOfRequest(_))
    }

    /// Asks the connection to close, if that loses nothing. True if it was not asked before.
    pub(crate) fn request_close(&self) -> bool {
        let asks = self.awaits_request() && !self.close_requested.swap(true, Ordering::Relaxed);
        if asks {
            // Orders what was stored before it.
            self.waker.wake();
        }
        asks
    }

    /// True if the connection was asked to close. If not, the task is woken when it is.
    pub(crate) fn is_close_requested(&self, context: &Context<'_>) -> bool {
        self.waker.register(context.waker());
        self.close_requested.load(Ordering::Relaxed)
    }

    /// The connection stays open, and may be asked again.
    pub(crate) fn keep_open(&self) {
        self.close_requested.store(false, Ordering::Relaxed);
    }

    /// Requests are multiplexed in frames, so bytes that arrive say nothing about a request.
    pub fn set_multiplexed(&self) {
        self.is_multiplexed.store(true, Ordering::Relaxed);
        self.has_read.store(false, Ordering::Relaxed);
    }

    /// A request is in progress for as long as the result lives.
    pub fn begin_request<A: Deref<Target = Self>>(activity: A) -> InProgress<A> {
        if activity.requests.fetch_add(1, Ordering::Relaxed) == 0 {
            activity.first.notify_one();
        }
        activity.has_read.store(activity.is_ahead.load(Ordering::Relaxed), Ordering::Relaxed);
        activity.in_progress.fetch_add(1, Ordering::Relaxed);
        InProgress(activity)
    }

    /// Ready once a request has begun. At most one task may wait for it.
    pub(crate) async fn first_request(&self) {
        if self.requests.load(Ordering::Relaxed) == 0 {
            self.first.notified().await;
        }
    }

    /// Records that bytes were read.
    pub fn record_read(&self) {
        self.has_read.store(!self.is_multiplexed.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Records whether what was read ends within a request.
    pub fn record_partial(&self, is_partial: bool) {
        self.has_read.store(is_partial, Ordering::Relaxed);
        self.is_ahead.store(is_partial, Ordering::Relaxed);
    }

    /// Records how many bytes were sent; `None` if the client reads none now.
    pub fn record_sent(&self, count: Option<usize>) {
        self.is_blocked.store(count.is_none(), Ordering::Relaxed);
        self.sent.fetch_add(count.unwrap_or(0) as u64, Ordering::Relaxed);
    }

    pub(crate) fn record_flush(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that changes whenever everything was flushed.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    pub(crate) fn waiting(&self) -> Waiting {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let requests = self.requests.load(Ordering::Relaxed);
        if is(&self.is_blocked) {
            Waiting::ClientToRead(self.sent.load(Ordering::Relaxed))
        } else if self.in_progress.load(Ordering::Relaxed) > 0 {
            Waiting::Nothing
        } else if is(&self.has_read) {
            Waiting::RestOfRequest(requests)
        } else {
            Waiting::Request(requests)
        }
    }
}

/// A request in progress.
#[derive(Debug)]
#[must_use]
pub struct InProgress<A: Deref<Target = Activity>>(A);

impl<A: Deref<Target = Activity>> Drop for InProgress<A> {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}
