//! Server-sent events: the status of the server, once per second.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use spillgate_net::{Activity, InProgress};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::HttpServer;
use super::service::block_in_place;
use crate::live::Reveal;
use crate::{Access, App};

/// The type of a stream of events.
pub(super) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// How many clients may watch at once.
const MOST: usize = 64;

/// Clients that watch.
#[derive(Debug, Default)]
pub(super) struct Watchers(Arc<AtomicUsize>);

/// The right to watch, until it is dropped.
#[derive(Debug)]
struct Watching(Arc<AtomicUsize>);

impl Watchers {
    fn begin(&self) -> Option<Watching> {
        // Relaxed: a count orders nothing.
        let relaxed = Ordering::Relaxed;
        let one_more = |count: usize| (count < MOST).then(|| count + 1);
        self.0.fetch_update(relaxed, relaxed, one_more).ok()?;
        Some(Watching(Arc::clone(&self.0)))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Events that a reply is to send in place of a body. In the extensions of a reply, which have to be
/// cloned.
#[derive(Clone)]
pub(super) struct EventStream {
    app: Arc<App>,
    reveal: Reveal,
    /// The access rules by which it was let in.
    access: Arc<Access>,
    _watching: Arc<Watching>,
}

impl EventStream {
    /// `None` if too many watch already.
    pub(super) fn open(server: &HttpServer, reveal: Reveal) -> Option<Self> {
        let watching = Arc::new(server.watchers.begin()?);
        let (app, access) = (Arc::clone(&server.app), Arc::clone(&server.app.access()));
        Some(Self { app, reveal, access, _watching: watching })
    }
}

/// The body of a reply: all at once, or events.
pub(super) enum ReplyBody {
    Whole(Full<Bytes>),
    Events(Box<Events>),
}

pub(super) struct Events {
    stream: EventStream,
    ticks: Interval,
    /// Ready when the server shuts down.
    end: BoxFuture<'static, ()>,
    /// A client that watches is not idle.
    _in_progress: InProgress<Arc<Activity>>,
}

impl ReplyBody {
    /// The events of a reply, or else its bytes.
    pub(super) fn of(reply: http::Response<Bytes>) -> http::Response<Self> {
        let (mut head, bytes) = reply.into_parts();
        let body = match head.extensions.remove::<EventStream>() {
            Some(stream) => Self::Events(Box::new(Events::new(stream))),
            None => Self::Whole(Full::new(bytes)),
        };
        http::Response::from_parts(head, body)
    }
}

impl Events {
    fn new(stream: EventStream) -> Self {
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut phase = stream.app.readiness().watch();
        let end = Box::pin(async move {
            let _ = phase.wait_for(|phase| *phase == crate::Phase::Draining).await;
        });
        let in_progress = Activity::begin_request(Activity::current());
        Self { stream, ticks, end, _in_progress: in_progress }
    }

    /// The next event; `None` at the end.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        ready!(self.ticks.poll_tick(context));
        let EventStream { app, reveal, access, .. } = &self.stream;
        // With another token, or other rules, the client has to ask again.
        if !Arc::ptr_eq(access, &app.access()) {
            return Poll::Ready(None);
        }
        Poll::Ready(
            block_in_place(|| app.live().status_text(app, *reveal)).ok().map(|text| event(&text)),
        )
    }
}

/// JSON has no line breaks outside of texts, and texts have none that are not escaped.
fn event(json: &[u8]) -> Bytes {
    let mut event = BytesMut::with_capacity(json.len() + 32);
    event.put_slice(b"event: status\ndata: ");
    event.put_slice(json);
    event.put_slice(b"\n\n");
    event.freeze()
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(context),
            Self::Events(events) => {
                let event = ready!(events.poll_event(context));
                Poll::Ready(event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
