use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::Timeouts;
use crate::body::Progress;
use crate::failure::Failure;

/// A timer that a connection keeps, since resetting it is cheap.
#[derive(Debug)]
pub(crate) struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
    pub(super) fn new(time: Duration) -> Self {
        Self(Box::pin(sleep(time)))
    }

    /// Sets the deadline to so long from now.
    pub(super) fn begin(&mut self, time: Duration) {
        self.0.as_mut().reset(Instant::now() + time);
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

/// The deadline of a response's head: the idle timeout while the request is sent, then the response
/// timeout.
#[derive(Debug)]
pub(super) struct HeadWait<'p> {
    deadline: &'p mut Deadline,
    timeouts: &'p Timeouts,
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
