use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};

use super::InFlight;
use super::http1::Http1;
use super::patience::Patience;
use crate::proxy::failure::Failure;

/// What a response comes from.
#[derive(Debug)]
pub(in crate::proxy) enum Source {
    /// A connection that must be polled, and may be kept in the end.
    Http1(Http1),
    /// One that lives by itself.
    Http2(Patience),
}

/// The body of an upstream's response. If it is dropped before its end, so is the
/// connection, or the upstream is told.
#[derive(Debug)]
pub(in crate::proxy) struct UpstreamBody {
    incoming: Incoming,
    /// Until the end.
    from: Option<(Source, InFlight)>,
    idle: Duration,
    /// Something came since patience began.
    is_fresh: bool,
}

impl UpstreamBody {
    pub(in crate::proxy) async fn new(
        incoming: Incoming,
        source: Source,
        request: InFlight,
    ) -> Self {
        let idle = request.0.times.idle;
        let mut body = Self { incoming, from: Some((source, request)), idle, is_fresh: true };
        if body.incoming.is_end_stream() {
            poll_fn(|context| Poll::Ready(body.end(context))).await;
        }
        body
    }

    pub(in crate::proxy) fn poll_frame(
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
        if polled.is_pending() {
            ready!(self.poll_patience(context));
            return Poll::Ready(Some(Err(Failure::UpstreamStalled)));
        }
        self.is_fresh = true;
        if matches!(polled, Poll::Ready(None)) || self.incoming.is_end_stream() {
            self.end(context);
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(Failure::Broken)))
    }

    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let patience = match &mut self.from {
            Some((Source::Http1(connection), _)) => &mut connection.patience,
            Some((Source::Http2(patience), _)) => patience,
            None => return Poll::Pending,
        };
        if std::mem::take(&mut self.is_fresh) {
            patience.begin(self.idle);
        }
        patience.poll(context)
    }

    /// The response has ended, so its connection is free.
    fn end(&mut self, context: &mut Context<'_>) {
        if let Some((Source::Http1(mut connection), request)) = self.from.take() {
            connection.poll(context);
            request.0.keep(connection);
        }
    }

    pub(in crate::proxy) fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub(in crate::proxy) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
