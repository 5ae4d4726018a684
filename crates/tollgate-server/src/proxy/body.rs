//! Bodies, either way. They are passed on as they come, and no faster than they are taken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::failure::Failure;
use super::streams::Pieces;
use super::upstream::UpstreamBody;
use crate::http::{AtWork, Pulse};

/// The body of a request on its way to an upstream.
#[derive(Debug, Default)]
pub(super) struct RequestBody {
    incoming: Option<Incoming>,
    progress: Option<Arc<Progress>>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming) -> Self {
        if incoming.is_end_stream() {
            return Self::default();
        }
        Self { incoming: Some(incoming), progress: Some(Arc::default()) }
    }

    /// How far it is; `None` if there is nothing to be sent.
    pub(super) fn progress(&self) -> Option<&Arc<Progress>> {
        self.progress.as_ref()
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { incoming: Some(incoming), progress } = self.get_mut() else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(&mut *incoming).poll_frame(context);
        if let Some(progress) = progress {
            progress.note(&polled, incoming.is_end_stream());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

/// How far the body of a request has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    frames: AtomicU64,
    has_ended: AtomicBool,
    has_failed: AtomicBool,
    awaits_client: AtomicBool,
}

// Relaxed throughout: counts and flags, each for itself.
impl Progress {
    fn note<E>(&self, polled: &Poll<Option<Result<Frame<Bytes>, E>>>, is_last: bool) {
        self.awaits_client.store(polled.is_pending(), Ordering::Relaxed);
        match polled {
            Poll::Pending => return,
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(_))) => self.has_failed.store(true, Ordering::Relaxed),
            Poll::Ready(None) => self.has_ended.store(true, Ordering::Relaxed),
        }
        self.frames.fetch_add(1, Ordering::Relaxed);
        if is_last {
            self.has_ended.store(true, Ordering::Relaxed);
        }
    }

    /// A number that changes whenever something is sent.
    pub(super) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// True once everything was sent.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// True if the client broke off, or what it sent is no body.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// True if it is the client, and not the upstream, that is waited for.
    pub(super) fn awaits_client(&self) -> bool {
        self.awaits_client.load(Ordering::Relaxed)
    }
}

/// The body of a response on its way to a client.
#[derive(Debug)]
pub(super) struct Body {
    kind: Kind,
    pieces: Option<Pieces>,
    /// The client is served for as long as this lives.
    _at_work: Option<AtWork<Arc<Pulse>>>,
}

#[derive(Debug)]
enum Kind {
    Bytes(Option<Bytes>),
    Upstream(Box<UpstreamBody>),
}

impl Body {
    /// Counts the client as being served until the body has been sent, which is done by this
    /// task.
    pub(super) fn hold(self, at_work: AtWork<Arc<Pulse>>) -> Self {
        Self { pieces: Pieces::of_task(), _at_work: Some(at_work), ..self }
    }

    fn of(kind: Kind) -> Self {
        Self { kind, pieces: None, _at_work: None }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        let bytes = Some(bytes.into()).filter(|bytes| !bytes.is_empty());
        Self::of(Kind::Bytes(bytes))
    }
}

impl From<Box<UpstreamBody>> for Body {
    fn from(body: Box<UpstreamBody>) -> Self {
        Self::of(Kind::Upstream(body))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let Self { kind, pieces, .. } = self.get_mut();
        let mut more = || match kind {
            Kind::Bytes(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Upstream(body) => body.poll_frame(context),
        };
        match pieces {
            Some(pieces) => pieces.next(more),
            None => more(),
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_last = match &self.kind {
            Kind::Bytes(bytes) => bytes.is_none(),
            Kind::Upstream(body) => body.is_end_stream(),
        };
        is_last && self.pieces.as_ref().is_none_or(Pieces::is_empty)
    }

    /// Of the whole: it is asked for before anything was handed over.
    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Bytes(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Kind::Upstream(body) => body.size_hint(),
        }
    }
}
