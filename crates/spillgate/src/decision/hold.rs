//! Decisions on permits, which are held and not spent.

use std::time::Duration;

use super::{Decision, Outcome};
use crate::algorithm::{AnyAlgorithm, TokenBucket, Word};
use crate::{Busy, Timestamp};

/// When to ask again for a permit that somebody holds.
const HOLD_RETRY: Duration = Duration::from_secs(1);

/// True if so many permits are free. No permit at all always is, as a cost of 0 is.
fn is_free(limit: u32, in_flight: u32, count: u32) -> bool {
    count == 0 || in_flight.checked_add(count).is_some_and(|total| total <= limit)
}

impl Decision {
    /// The decision on a call that holds `count` permits of `limit` until it ends, when
    /// `in_flight` were held before it: see [`Concurrency`](crate::Concurrency).
    ///
    /// Permits are released, not refilled: there is no [`window`](Self::window) and no
    /// [`reset_after`](Self::reset_after). Nobody knows when one is released, so
    /// [`retry_after`](Self::retry_after) of a denial is a second. There is nothing to settle or
    /// refund either, so [`spent`](Self::spent) is `None`: dropping the permit releases it.
    ///
    /// ```
    /// use spillgate::{Concurrency, Decision, Timestamp};
    ///
    /// let (uploads, now) = (Concurrency::<str>::new(2), Timestamp::from_secs(1));
    /// let decision = match uploads.try_acquire("alice") {
    ///     Ok(permit) => Decision::of_hold(2, permit.in_flight() - permit.count(), 1, now),
    ///     Err(busy) => Decision::of_busy(2, &busy, 1, now),
    /// };
    /// assert!(decision.is_allowed());
    /// assert_eq!((decision.remaining(), decision.reset_after()), (1, None));
    /// ```
    pub fn of_hold(limit: u32, in_flight: u32, count: u32, now: Timestamp) -> Self {
        match is_free(limit, in_flight, count) {
            true => Self::hold(limit, in_flight.saturating_add(count), count, now, Outcome::Held),
            false => Self::hold(limit, in_flight, count, now, Outcome::Busy),
        }
    }

    /// The denial of a call that needs `count` permits of `limit` and got none.
    pub fn of_busy(limit: u32, busy: &Busy, count: u32, now: Timestamp) -> Self {
        let outcome = if busy.is_full { Outcome::NoRoom } else { Outcome::Busy };
        Self::hold(limit, busy.in_flight, count, now, outcome)
    }

    /// What [`of_hold`](Self::of_hold) would decide, without holding:
    /// [`remaining`](Self::remaining) is what there is now.
    pub fn peek_hold(limit: u32, in_flight: u32, count: u32, now: Timestamp) -> Self {
        let passes = is_free(limit, in_flight, count);
        let outcome = if passes { Outcome::WouldHold } else { Outcome::Busy };
        Self::hold(limit, in_flight, count, now, outcome)
    }

    fn hold(limit: u32, held: u32, count: u32, now: Timestamp, outcome: Outcome) -> Self {
        // A bucket that never refills counts what is taken, and nothing else.
        let algorithm = TokenBucket::counting(limit.into()).into();
        Self { algorithm, word: Word::from_bits(held.into()), now, cost: count.into(), outcome }
    }

    /// True if the decision is on [permits](Self::of_hold), held while the call is in progress.
    #[must_use]
    pub fn is_hold(&self) -> bool {
        use Outcome::{Busy, Held, NoRoom, WouldHold};
        matches!(self.outcome, Held | WouldHold | Busy | NoRoom)
    }

    /// More permits than there are will never be free.
    pub(super) fn hold_retry_after(&self) -> Option<Duration> {
        (self.cost <= self.limit()).then_some(HOLD_RETRY)
    }

    /// The algorithm, unless it counts permits: those come back when they are released, however
    /// many are left.
    pub(super) fn refills(&self) -> Option<&AnyAlgorithm> {
        (!self.is_hold()).then_some(&self.algorithm)
    }
}
