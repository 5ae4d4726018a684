use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};

use super::deadline::Deadline;
use super::http1::Http1;
use super::{Answered, InFlight};
use crate::body::Progress;
use crate::failure::Failure;

#[derive(Debug)]
pub(crate) enum Source {
    /// Polled by the response, and pooled after it.
    Http1(Http1),
    /// Shared, in a task of its own.
    Http2(Deadline),
}

/// The body of an upstream's response. If it is dropped before its end, the connection is closed,
/// or the stream reset.
#[derive(Debug)]
pub(crate) struct UpstreamBody {
    incoming: Incoming,
    /// `None` after the end.
    from: Option<(Source, InFlight)>,
    /// The request's body, which may still be sent.
    request: Option<Arc<Progress>>,
    /// Its progress at the last sample.
    frames: u64,
    idle: Duration,
    /// Something arrived since the deadline was set.
    is_fresh: bool,
}

impl UpstreamBody {
    pub(crate) async fn new(answered: Answered, in_flight: InFlight) -> (Parts, Self) {
        let Answered { response, source, request } = answered;
        let (head, incoming) = response.into_parts();
        let idle = in_flight.upstream.timeouts.idle;
        let from = Some((source, in_flight));
        let frames = request.as_ref().map_or(0, |request| request.frames());
        let mut body = Self { incoming, from, request, frames, idle, is_fresh: true };
        if body.incoming.is_end_stream() {
            poll_fn(|context| {
                body.end(context);
                Poll::Ready(())
            })
            .await;
        }
        (head, body)
    }

    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let mut polled = Pin::new(&mut self.incoming).poll_frame(context);
        if polled.is_pending()
            && let Some((Source::Http1(connection), _)) = &mut self.from
        {
            connection.poll(context);
            polled = Pin::new(&mut self.incoming).poll_frame(context);
        }
        let frame = match polled {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                ready!(self.poll_deadline(context));
                self.cut();
                return Poll::Ready(Some(Err(Failure::UpstreamStalled)));
            }
        };
        self.is_fresh = true;
        match &frame {
            Some(Err(_)) => self.cut(),
            None => self.end(context),
            Some(Ok(_)) if self.incoming.is_end_stream() => self.end(context),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Failure::Broken)))
    }

    fn cut(&mut self) {
        if let Some((_, in_flight)) = self.from.take() {
            in_flight.upstream.cut.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = match &mut self.from {
            Some((Source::Http1(connection), _)) => &mut connection.deadline,
            Some((Source::Http2(deadline), _)) => deadline,
            None => return Poll::Pending,
        };
        if std::mem::take(&mut self.is_fresh) {
            deadline.begin(self.idle);
        }
        ready!(deadline.poll(context));
        // An upstream may be silent while it receives.
        let frames = self.request.as_ref().map_or(0, |request| request.frames());
        if std::mem::replace(&mut self.frames, frames) == frames {
            return Poll::Ready(());
        }
        deadline.begin(self.idle);
        deadline.poll(context)
    }

    /// The response is complete, so its connection is free.
    fn end(&mut self, context: &mut Context<'_>) {
        if let Some((Source::Http1(mut connection), in_flight)) = self.from.take() {
            connection.poll(context);
            if connection.is_ready() {
                in_flight.upstream.pool.put(connection);
            }
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
