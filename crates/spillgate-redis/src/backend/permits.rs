use std::time::Duration;

use crate::Name;

/// An operation on the permits of a caller under a limit on concurrency.
///
/// ```
/// use std::time::Duration;
/// use spillgate_redis::Name;
/// use spillgate_redis::backend::{Model, PermitCall, PermitOp, Wanted};
///
/// let [name, holder] = [1, 2].map(|byte| Name::from_bytes([byte; 16]));
/// let hold = PermitOp::Hold(Wanted::exactly(3, 5, Duration::from_secs(30)));
/// let redis = Model::default();
/// let reply = redis.permits_now(&PermitCall { name, holder, op: hold });
/// assert!(reply.is_done);
/// assert_eq!((reply.held, reply.total), (3, 3));
/// let release = PermitCall { name, holder, op: PermitOp::Release };
/// assert!(redis.permits_now(&release).is_done);
/// assert!(!redis.permits_now(&release).is_done, "once");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitCall {
    /// The caller.
    pub name: Name,
    /// Who holds the permits: a node, or a program that acquires them. A random name.
    pub holder: Name,
    /// The operation.
    pub op: PermitOp,
}

/// An operation on the permits of one holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitOp {
    /// Sets how many permits the holder has, and renews them.
    Hold(Wanted),
    /// Lets permits of a program expire `ttl` from now, unless they have expired.
    Renew {
        /// The time to live.
        ttl: Duration,
    },
    /// Gives the permits of a program back, unless they have expired.
    Release,
    /// Gives the permits of a program back that does not know whether it got them: also those of a
    /// [hold](Self::Hold) that arrives up to `late` afterwards.
    Revoke {
        /// How long a late call changes nothing.
        late: Duration,
    },
}

/// How many permits a holder wants, with those that it has. Numbers are absolute, so that a call whose
/// reply was lost can be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number of the call, by which one that is overtaken by the next changes nothing; 0 for a
    /// program.
    pub number: u64,
    /// Denied if fewer are free. Then the holder keeps what it has, up to `usable`.
    pub least: u32,
    /// As many of these as are free.
    pub needed: u32,
    /// As many of these as fit in a share of what is still free: half of it, divided by the nodes.
    pub usable: u32,
    /// How many permits there are.
    pub limit: u32,
    /// How many nodes share them.
    pub nodes: u32,
    /// When they expire.
    pub ttl: Duration,
    /// True to get the least in any case: for limits in shadow mode.
    pub is_beyond: bool,
}

impl Wanted {
    /// Exactly so many.
    #[must_use]
    pub fn exactly(count: u32, limit: u32, ttl: Duration) -> Self {
        let (least, needed, usable) = (count, count, count);
        Self { number: 0, least, needed, usable, limit, nodes: 1, ttl, is_beyond: false }
    }

    /// How many a holder of `own` gets, and whether that is enough, if all hold `total`.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn granted(&self, own: u32, total: u32) -> (u32, bool) {
        let free = i64::from(self.limit) - (i64::from(total) - i64::from(own));
        if i64::from(self.least) > free {
            let kept = if self.is_beyond { self.least } else { own.min(self.usable) };
            return (kept, false);
        }
        let free = free as u32;
        // What it has is in use, also if there are fewer permits than there were.
        let sure = self.needed.min(free.max(own)).max(self.least);
        let share = free.saturating_sub(sure) / (2 * self.nodes);
        (self.usable.min(sure + share).max(sure), true)
    }
}

/// What became of a [call](PermitCall).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermitReply {
    /// How many the holder has now.
    pub held: u32,
    /// How many all have now.
    pub total: u32,
    /// How many permits of programs were found to have expired before they were released.
    pub expired: u32,
    /// True if the holder has at least as many as it wanted, or if they were renewed or released.
    pub is_done: bool,
}
