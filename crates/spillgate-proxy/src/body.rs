//! Bodies of requests and responses, streamed with backpressure.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use spillgate::{Clock, SystemClock, Timestamp};

use super::failure::Failure;
use super::response_guard::{Cut, ResponseGuard};
use super::streams::Pieces;
use super::trailers::TrailerFilter;
use super::upstream::UpstreamBody;

#[derive(Debug, Default)]
pub(super) struct RequestBody(Option<Sending>);

/// A body that is not empty.
#[derive(Debug)]
struct Sending {
    incoming: Incoming,
    trailers: TrailerFilter,
    progress: Arc<Progress>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, trailers: TrailerFilter) -> Self {
        let is_empty = incoming.is_end_stream();
        Self((!is_empty).then(|| Sending { incoming, trailers, progress: Arc::default() }))
    }

    /// Keeps the time of its end, for whoever asks for [`Progress::latency`], if there is one.
    pub(super) fn note_end(&mut self, is_asked: impl FnOnce() -> bool) {
        if let Some(sending) = &mut self.0
            && is_asked()
        {
            sending.progress =
                Arc::new(Progress { ended_at: Some(AtomicU64::new(0)), ..Progress::default() });
        }
    }

    /// Its progress; `None` if it is empty.
    pub(super) fn progress(&self) -> Option<&Arc<Progress>> {
        self.0.as_ref().map(|sending| &sending.progress)
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let Some(Sending { incoming, trailers, progress }) = &mut self.get_mut().0 else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(&mut *incoming).poll_frame(context);
        let polled = trailers.filter_frame(polled.map_err(|_| Failure::ClientBroke));
        progress.note(&polled, incoming.is_end_stream());
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|sending| sending.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let hint = |sending: &Sending| sending.incoming.size_hint();
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), hint)
    }
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    frames: AtomicU64,
    has_ended: AtomicBool,
    /// When it ended, in nanoseconds, if that is asked for; 0 before.
    ended_at: Option<AtomicU64>,
    has_failed: AtomicBool,
    awaits_client: AtomicBool,
}

// Relaxed throughout: independent counts and flags.
impl Progress {
    fn note<E>(&self, polled: &Poll<Option<Result<Frame<Bytes>, E>>>, is_last: bool) {
        self.awaits_client.store(polled.is_pending(), Ordering::Relaxed);
        match polled {
            Poll::Pending => return,
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(_))) => self.has_failed.store(true, Ordering::Relaxed),
            Poll::Ready(None) => self.end(),
        }
        self.frames.fetch_add(1, Ordering::Relaxed);
        if is_last {
            self.end();
        }
    }

    fn end(&self) {
        if let Some(at) = self.ended_at.as_ref().filter(|_| !self.has_ended()) {
            at.store(SystemClock.now().as_nanos(), Ordering::Relaxed);
        }
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// True if it keeps the time of its end.
    pub(super) const fn notes_end(&self) -> bool {
        self.ended_at.is_some()
    }

    /// How long ago it was sent to its end: until then, it was the client who took its time. `None` if
    /// it was not, or nobody keeps the time.
    pub(super) fn latency(&self, now: Timestamp) -> Option<Duration> {
        let nanos = self.ended_at.as_ref()?.load(Ordering::Relaxed);
        (nanos > 0).then(|| now.since(Timestamp::from_nanos(nanos)))
    }

    /// A number that changes whenever something is sent.
    pub(super) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// True if the client disconnected, or the body is invalid.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// True while waiting for the client, and not for the upstream.
    pub(super) fn awaits_client(&self) -> bool {
        self.awaits_client.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub(super) struct Body {
    kind: Kind,
    pieces: Option<Pieces>,
    guard: Option<ResponseGuard>,
    /// The failure that ends it, until the client has what came before.
    cut: Option<Cut>,
}

#[derive(Debug)]
enum Kind {
    Bytes(Option<Bytes>),
    Upstream(Box<(UpstreamBody, TrailerFilter)>),
}

impl Body {
    /// Counts the request as in progress until the body has been sent, by this task.
    pub(super) fn hold(self, guard: ResponseGuard) -> Self {
        Self { pieces: Pieces::of_task(), guard: Some(guard), ..self }
    }

    pub(super) fn of_upstream(body: UpstreamBody, trailers: TrailerFilter) -> Self {
        Self::of(Kind::Upstream(Box::new((body, trailers))))
    }

    fn of(kind: Kind) -> Self {
        Self { kind, pieces: None, guard: None, cut: None }
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let Self { kind, pieces, .. } = self;
        let mut more = || match kind {
            Kind::Bytes(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Upstream(upstream) => {
                let (body, trailers) = &mut **upstream;
                trailers.filter_frame(body.poll_frame(context))
            }
        };
        match pieces {
            Some(pieces) => pieces.next(more),
            None => more(),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        let bytes = Some(bytes.into()).filter(|bytes| !bytes.is_empty());
        Self::of(Kind::Bytes(bytes))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = self.get_mut();
        if let Some(cut) = &this.cut {
            if this.guard.as_ref().is_some_and(|guard| guard.holds_back(cut)) {
                // hyper polls again after it has sent something.
                return Poll::Pending;
            }
            return Poll::Ready(this.cut.take().map(|cut| Err(cut.failure)));
        }
        match (ready!(this.poll_next(context)), &mut this.guard) {
            (Some(Err(failure)), Some(guard)) => {
                this.cut = Some(guard.cut(failure, this.pieces.is_some(), context));
                Poll::Pending
            }
            (polled, _) => Poll::Ready(polled),
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_last = match &self.kind {
            Kind::Bytes(bytes) => bytes.is_none(),
            Kind::Upstream(upstream) => upstream.0.is_end_stream(),
        };
        is_last && self.cut.is_none() && self.pieces.as_ref().is_none_or(Pieces::is_empty)
    }

    /// Of the whole body: hyper asks before the first frame.
    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Bytes(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Kind::Upstream(upstream) => upstream.0.size_hint(),
        }
    }
}
