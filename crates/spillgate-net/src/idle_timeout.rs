use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::Activity;
use crate::activity::Waiting;

/// Detects clients that take too long. It samples the [`Activity`] of a connection, which is
/// cheaper than a timer per request.
#[derive(Debug)]
pub struct IdleTimeout {
    interval: Duration,
    stalled: Duration,
    idle: Duration,
    seen: Waiting,
    since: Instant,
    next: Pin<Box<Sleep>>,
}

impl IdleTimeout {
    /// `stalled` is the time for the rest of a request and for a response to be read, `idle` the
    /// time until the next request.
    #[must_use]
    pub fn new(stalled: Duration, idle: Duration) -> Self {
        const LONGEST: Duration = Duration::from_secs(60 * 60);
        // A timeout is exceeded by a quarter at most.
        let interval = (stalled / 4).min(idle).min(LONGEST);
        let (seen, since) = (Waiting::Request(0), Instant::now());
        Self { interval, stalled, idle, seen, since, next: Box::pin(sleep(interval)) }
    }

    /// Ready when the client has taken too long. It may be dropped and called again.
    pub async fn expired(&mut self, activity: &Activity) {
        loop {
            self.next.as_mut().await;
            let Some(next) = self.sample(activity.waiting()) else { return };
            self.next.as_mut().reset(next);
        }
    }

    /// When to sample again; `None` if the client has taken too long.
    fn sample(&mut self, waiting: Waiting) -> Option<Instant> {
        let now = Instant::now();
        if self.seen != waiting {
            (self.seen, self.since) = (waiting, now);
        }
        let allowed = match waiting {
            Waiting::Nothing => return Some(now + self.interval),
            Waiting::Request(_) => self.idle,
            Waiting::RestOfRequest(_) | Waiting::ClientToRead(_) => self.stalled,
        };
        let left = allowed.saturating_sub(now.duration_since(self.since));
        (!left.is_zero()).then(|| now + left.min(self.interval))
    }
}
