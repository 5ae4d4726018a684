use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::Bounds;
use super::pulse::{Pulse, Waiting};

/// Waits for a client no longer than it may take.
///
/// Looking now and then costs nothing while a client is busy, as a timer for each request
/// would.
#[derive(Debug)]
pub(crate) struct Watch {
    patience: Duration,
    stalled: Duration,
    idle: Duration,
    seen: Waiting,
    since: Instant,
    next: Pin<Box<Sleep>>,
}

impl Watch {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        const LONGEST: Duration = Duration::from_secs(60 * 60);
        // Often enough that nobody has a fourth more time than he should.
        let patience = (bounds.stalled / 4).min(bounds.idle).min(LONGEST);
        Self {
            patience,
            stalled: bounds.stalled,
            idle: bounds.idle,
            seen: Waiting::Request(0),
            since: Instant::now(),
            next: Box::pin(sleep(patience)),
        }
    }

    /// Ends when the client has been waited for too long. Nothing is lost if it is dropped,
    /// and called again.
    pub(crate) async fn run_out(&mut self, pulse: &Pulse) {
        loop {
            self.next.as_mut().await;
            let Some(next) = self.look(pulse.waiting()) else { return };
            self.next.as_mut().reset(next);
        }
    }

    /// When to look again; `None` if the client has been waited for too long.
    fn look(&mut self, waiting: Waiting) -> Option<Instant> {
        let now = Instant::now();
        if self.seen != waiting {
            (self.seen, self.since) = (waiting, now);
        }
        let allowed = match waiting {
            Waiting::Nothing => return Some(now + self.patience),
            Waiting::Request(_) => self.idle,
            Waiting::Rest(_) | Waiting::Reading(_) => self.stalled,
        };
        let left = allowed.saturating_sub(now.duration_since(self.since));
        (!left.is_zero()).then(|| now + left.min(self.patience))
    }
}
