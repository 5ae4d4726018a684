use tokio::time::Instant;
use tollgate::Timestamp;

/// What time an engine said it was, and when it was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The engine's time, in its answer.
    pub(crate) now: Timestamp,
    /// This node's, before it asked.
    pub(crate) sent: Instant,
}

/// Two clocks drift apart by less than this part of the time.
const DRIFT: u32 = 1000;

impl Seen {
    /// The latest that the engine's time can be at a moment of this node: the answer was
    /// made after the question was sent, so less time has gone by since.
    pub(crate) fn latest_at(self, moment: Instant) -> Timestamp {
        let since = moment.saturating_duration_since(self.sent);
        self.now + since + since / DRIFT
    }
}
