use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::Timeouts;
use crate::body::Progress;
use crate::failure::Failure;

/// A timer that is set again and again. To set one later than before costs next to nothing,
/// so a connection keeps its own.
#[derive(Debug)]
pub(crate) struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
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
    deadline: &'p mut Deadline,
    timeouts: &'p Timeouts,
    /// The request's body, until it was sent.
    body: Option<Arc<Progress>>,
    frames: u64,
}

impl<'p> HeadWait<'p> {
    pub(super) fn new(
        deadline: &'p mut Deadline,
        timeouts: &'p Timeouts,
        body: Option<Arc<Progress>>,
    ) -> Self {
        deadline.begin(if body.is_some() { timeouts.idle } else { timeouts.response });
        Self { deadline, timeouts, body, frames: 0 }
    }

    /// Ready when somebody was waited for too long.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Failure> {
        let frames = self.body.as_ref().map_or(0, |body| body.frames());
        if self.body.as_ref().is_some_and(|body| body.has_ended()) {
            self.body = None;
            self.deadline.begin(self.timeouts.response);
        } else if frames != self.frames {
            self.frames = frames;
            self.deadline.begin(self.timeouts.idle);
        }
        ready!(self.deadline.poll(context));
        Poll::Ready(match &self.body {
            Some(body) if body.awaits_client() => Failure::ClientStalled,
            _ => Failure::UpstreamStalled,
        })
    }
}
