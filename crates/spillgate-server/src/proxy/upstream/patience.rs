use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::Times;
use crate::proxy::body::Progress;
use crate::proxy::failure::Failure;

/// A timer that is set again and again. To set one later than before costs next to nothing,
/// so a connection keeps its own.
#[derive(Debug)]
pub(in crate::proxy) struct Patience(Pin<Box<Sleep>>);

impl Patience {
    pub(super) fn new(time: Duration) -> Self {
        Self(Box::pin(sleep(time)))
    }

    /// Waits for so long from now on.
    pub(super) fn begin(&mut self, time: Duration) {
        self.0.as_mut().reset(Instant::now() + time);
    }

    /// Ready when it has run out.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

/// Waits for the head of a response: as long as the request is being sent, no longer than a
/// body may make no progress, then no longer than an upstream may take.
#[derive(Debug)]
pub(super) struct HeadWait<'p> {
    patience: &'p mut Patience,
    times: &'p Times,
    /// The request's body, until it was sent.
    body: Option<Arc<Progress>>,
    frames: u64,
}

impl<'p> HeadWait<'p> {
    pub(super) fn new(
        patience: &'p mut Patience,
        times: &'p Times,
        body: Option<Arc<Progress>>,
    ) -> Self {
        patience.begin(if body.is_some() { times.idle } else { times.response });
        Self { patience, times, body, frames: 0 }
    }

    /// Ready when somebody was waited for too long.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Failure> {
        let frames = self.body.as_ref().map_or(0, |body| body.frames());
        if self.body.as_ref().is_some_and(|body| body.has_ended()) {
            self.body = None;
            self.patience.begin(self.times.response);
        } else if frames != self.frames {
            self.frames = frames;
            self.patience.begin(self.times.idle);
        }
        ready!(self.patience.poll(context));
        Poll::Ready(match &self.body {
            Some(body) if body.awaits_client() => Failure::ClientStalled,
            _ => Failure::UpstreamStalled,
        })
    }
}
