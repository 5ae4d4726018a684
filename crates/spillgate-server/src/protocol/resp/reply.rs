//! The five integers with which `CL.THROTTLE` and `SG.CHECK` answer.

use std::time::Duration;

use spillgate::Decision;

use super::codec::Writer;

/// A decision in the form of redis-cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThrottleReply {
    pub(super) limited: bool,
    pub(super) limit: u64,
    pub(super) remaining: u64,
    /// `None` if the call was allowed, or if no waiting helps.
    pub(super) retry_after: Option<Duration>,
    /// `None` if what is spent stays spent.
    pub(super) reset_after: Option<Duration>,
}

impl From<Decision> for ThrottleReply {
    fn from(decision: Decision) -> Self {
        let limited = decision.is_denied();
        let retry_after = decision.retry_after().filter(|_| limited);
        let reply = Self {
            limited,
            limit: decision.limit(),
            remaining: decision.remaining(),
            retry_after,
            reset_after: decision.reset_after(),
        };
        match (retry_after, decision.idle_after()) {
            // Who waits for room in a full table owes nothing.
            (Some(retry), Some(idle)) => reply.full_after(retry.min(idle)),
            _ => reply,
        }
    }
}

impl ThrottleReply {
    /// For a call that passes though nothing is known of its limit.
    pub(super) const UNDECIDED: Self = Self {
        limited: false,
        limit: 0,
        remaining: 0,
        retry_after: None,
        reset_after: Some(Duration::ZERO),
    };

    /// As a quota is written, it is full some time before the last of its tokens is there: not
    /// before so long, after which a caller has what it waits for.
    pub(super) fn full_after(self, least: Duration) -> Self {
        Self { reset_after: self.reset_after.map(|reset| reset.max(least)), ..self }
    }

    pub(super) fn integers(&self) -> [i64; 5] {
        [
            i64::from(self.limited),
            integer(self.limit),
            integer(self.remaining),
            self.retry_after.map_or(-1, whole_seconds),
            self.reset_after.map_or(-1, whole_seconds),
        ]
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.array(5);
        for number in self.integers() {
            out.integer(number);
        }
    }
}

/// Rounded up, so that a retry after it is not too early.
fn whole_seconds(time: Duration) -> i64 {
    integer(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
