//! What one caller got, and the most that it may have got.

use std::time::Duration;

use spillgate::{Decision, Quota, Timestamp};

use crate::acts::{FLOOD_BEGINS, FLOOD_ENDS, LENGTH};

/// How many stretches of time the history is kept in.
pub(crate) const CELLS: usize = 20;

/// What one caller got so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) asked: u64,
    pub(crate) admitted: u64,
    /// Admitted calls by the time they were made, a cell for each half second.
    pub(crate) history: [u64; CELLS],
    /// From the first call to the last.
    pub(crate) whole: Option<Span>,
    /// The calls that were made during the flood.
    pub(crate) flood: Option<Span>,
    /// The last decision before the flood.
    before_flood: Option<Decision>,
    /// How long the calls took.
    pub(crate) busy: Duration,
}

/// A stretch of one caller's calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The most that the caller could spend when it began.
    pub(crate) at_first: u64,
    from: Timestamp,
    to: Timestamp,
    pub(crate) admitted: u64,
}

impl Tally {
    pub(crate) fn denied(&self) -> u64 {
        self.asked - self.admitted
    }

    /// Nanoseconds per decision, if the clock went on while they were made.
    pub(crate) fn nanos_a_call(&self) -> Option<u128> {
        let nanos = self.busy.as_nanos();
        (nanos > 0 && self.asked > 0).then(|| nanos / u128::from(self.asked))
    }

    pub(crate) fn count(&mut self, decision: &Decision, began: Timestamp) {
        let elapsed = decision.now().since(began);
        self.asked += 1;
        self.whole.get_or_insert(Span::first(decision)).count(decision);
        if elapsed < FLOOD_BEGINS {
            self.before_flood = Some(*decision);
        } else if elapsed < FLOOD_ENDS {
            let before = self.before_flood;
            self.flood.get_or_insert(Span::after(before.as_ref(), decision)).count(decision);
        }
        if decision.is_allowed() {
            self.admitted += 1;
            let cell = elapsed.as_millis() * CELLS as u128 / LENGTH.as_millis();
            // What is called in the last moment belongs to the last cell.
            let cell = usize::try_from(cell).unwrap_or(usize::MAX).min(CELLS - 1);
            self.history[cell] += 1;
        }
    }
}

impl Span {
    /// Begins with a caller's very first call, when all of the burst is there.
    fn first(decision: &Decision) -> Self {
        Self { at_first: decision.limit(), from: decision.now(), to: decision.now(), admitted: 0 }
    }

    /// Begins after the call `before`, or with the very first call.
    fn after(before: Option<&Decision>, first: &Decision) -> Self {
        before.map_or(Self::first(first), |before| Self {
            // Tokens are told in whole ones, so there was less than one more.
            at_first: before.remaining() + 1,
            from: before.now(),
            to: before.now(),
            admitted: 0,
        })
    }

    fn count(&mut self, decision: &Decision) {
        self.to = self.to.max(decision.now());
        self.admitted += u64::from(decision.is_allowed());
    }

    pub(crate) fn length(&self) -> Duration {
        self.to.since(self.from)
    }

    /// What may be admitted at most: what was there at first, and what was
    /// refilled since.
    pub(crate) fn most(&self, quota: &Quota) -> u64 {
        let refilled = quota.interval().map_or(0, |one| self.length().as_nanos() / one.as_nanos());
        self.at_first.saturating_add(u64::try_from(refilled).unwrap_or(u64::MAX))
    }

    pub(crate) fn is_kept(&self, quota: &Quota) -> bool {
        self.admitted <= self.most(quota)
    }
}

#[cfg(test)]
mod tests {
    use spillgate::{Clock, Limiter, ManualClock};

    use super::*;

    #[test]
    fn one_call_too_many_is_noticed() {
        let clock = ManualClock::default();
        let quota = Quota::per_second(10).burst(20).build().unwrap();
        let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().unwrap();
        let began = clock.now();
        let mut tally = Tally::default();
        for _ in 0..30 {
            tally.count(&limiter.check("greedy"), began);
            clock.advance(Duration::from_millis(10));
        }
        let mut whole = tally.whole.unwrap();
        assert_eq!((tally.asked, tally.admitted, tally.denied()), (30, 22, 8));
        assert_eq!((whole.admitted, whole.most(&quota)), (22, 22));
        assert!(whole.is_kept(&quota));
        whole.admitted += 1;
        assert!(!whole.is_kept(&quota));
    }
}
