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
    static OF_TASK: Arc<Pulse>;
}

/// What a connection is doing, as whoever looks at it now and then needs to know.
///
/// Nearly all of it happens in the task of the connection. It is atomic because parts of that
/// task share it, and the task may move between threads: references to cells could not.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Requests that were begun.
    requests: AtomicU64,
    /// Requests that are being carried out.
    at_work: AtomicU64,
    /// Something was read since the last request was begun.
    has_read: AtomicBool,
    /// What was read goes beyond the head of the request that was begun, and ends within one.
    is_ahead: AtomicBool,
    /// What is read need not be part of a request: frames tell of other things as well.
    has_frames: AtomicBool,
    /// Bytes that were sent.
    sent: AtomicU64,
    /// The client does not take what is to be sent.
    is_stuck: AtomicBool,
    /// How often everything was sent that there was.
    flushes: AtomicU64,
    /// The first request was begun.
    first: Notify,
    /// The connection is to end unless a request arrives.
    is_asked_to_leave: AtomicBool,
    /// The task that is told of that. It is smaller than a [`Notify`], and there are many.
    asked: AtomicWaker,
}

/// What the client is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Nothing: it waits for us.
    Nothing,
    /// The next request, after so many.
    Request(u64),
    /// The rest of a request, after so many.
    Rest(u64),
    /// That it reads on, after so many bytes.
    Reading(u64),
}

// Relaxed throughout: what is seen a little later is seen in time.
impl Pulse {
    /// Lets a connection be looked at from outside its task, by this.
    pub(crate) fn scope<F: Future>(pulse: Arc<Self>, task: F) -> TaskLocalFuture<Arc<Self>, F> {
        OF_TASK.scope(pulse, task)
    }

    /// That of the connection which this task serves, or a new one if nobody else looks at it.
    pub(crate) fn of_task() -> Arc<Self> {
        OF_TASK.try_with(Arc::clone).unwrap_or_default()
    }

    /// True if the client has yet to send its first request, or the rest of one: nothing would
    /// be lost if the connection ended.
    pub(crate) fn awaits_request(&self) -> bool {
        matches!(self.waiting(), Waiting::Request(0) | Waiting::Rest(_))
    }

    /// Asks the connection to end, if nothing is lost by that and it was not asked before. Tells
    /// whether it was asked now.
    pub(crate) fn ask_to_leave(&self) -> bool {
        let asks = self.awaits_request() && !self.is_asked_to_leave.swap(true, Ordering::Relaxed);
        if asks {
            // Orders what was stored before it.
            self.asked.wake();
        }
        asks
    }

    /// True if the connection was asked to end. If not, the task is woken when it is.
    pub(crate) fn is_asked_to_leave(&self, context: &Context<'_>) -> bool {
        self.asked.register(context.waker());
        self.is_asked_to_leave.load(Ordering::Relaxed)
    }

    /// The connection stays, and may be asked again.
    pub(crate) fn stays(&self) {
        self.is_asked_to_leave.store(false, Ordering::Relaxed);
    }

    /// Frames are exchanged, for many requests at once. For the rest of one the request itself
    /// has to wait.
    pub(crate) fn takes_frames(&self) {
        self.has_frames.store(true, Ordering::Relaxed);
        self.has_read.store(false, Ordering::Relaxed);
    }

    /// A request is carried out for as long as the result lives.
    pub(crate) fn work<P: Deref<Target = Self>>(pulse: P) -> AtWork<P> {
        if pulse.requests.fetch_add(1, Ordering::Relaxed) == 0 {
            pulse.first.notify_one();
        }
        pulse.has_read.store(pulse.is_ahead.load(Ordering::Relaxed), Ordering::Relaxed);
        pulse.at_work.fetch_add(1, Ordering::Relaxed);
        AtWork(pulse)
    }

    /// Ends when a request has been begun. At most one task waits for it.
    pub(crate) async fn first_request(&self) {
        if self.requests.load(Ordering::Relaxed) == 0 {
            self.first.notified().await;
        }
    }

    /// Something was read.
    pub(crate) fn has_read(&self) {
        self.has_read.store(!self.has_frames.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// What was read up to now ends within a request, or not, as whoever looked at it says: a
    /// request may have been read together with the beginning of the next.
    pub(crate) fn ends_within(&self, request: bool) {
        self.has_read.store(request, Ordering::Relaxed);
        self.is_ahead.store(request, Ordering::Relaxed);
    }

    /// So much was sent; nothing, if the client does not take it now.
    pub(crate) fn has_sent(&self, count: Option<usize>) {
        self.is_stuck.store(count.is_none(), Ordering::Relaxed);
        self.sent.fetch_add(count.unwrap_or(0) as u64, Ordering::Relaxed);
    }

    /// Everything was sent that there was.
    pub(super) fn has_flushed(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that changes whenever everything was sent that there was.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    pub(super) fn waiting(&self) -> Waiting {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let requests = self.requests.load(Ordering::Relaxed);
        if is(&self.is_stuck) {
            Waiting::Reading(self.sent.load(Ordering::Relaxed))
        } else if self.at_work.load(Ordering::Relaxed) > 0 {
            Waiting::Nothing
        } else if is(&self.has_read) {
            Waiting::Rest(requests)
        } else {
            Waiting::Request(requests)
        }
    }
}

/// A request that is being carried out.
#[derive(Debug)]
pub(crate) struct AtWork<P: Deref<Target = Pulse>>(P);

impl<P: Deref<Target = Pulse>> Drop for AtWork<P> {
    fn drop(&mut self) {
        self.0.at_work.fetch_sub(1, Ordering::Relaxed);
    }
}
