use std::time::Duration;

use num_rational::BigRational as Rational;
use spillgate::{AlgorithmKind, Start};

use super::Rule;
use crate::Limit;
use crate::exact::{Nanos, difference, floor, fraction, nanos, whole};

/// Debt that shrinks by one token per interval; as a leaky bucket, the calls that wait in a queue.
#[derive(Clone)]
pub(crate) struct TokenBucket {
    burst: u64,
    /// How long a token takes to fall, if any ever does.
    interval: Option<Nanos>,
    /// A caller never seen.
    start: Debt,
    /// True if calls wait until everything before them has left.
    shapes: bool,
}

/// How many tokens were missing when the caller was last written.
#[derive(Clone)]
pub(crate) struct Debt {
    tokens: Rational,
    at: Nanos,
}

impl TokenBucket {
    pub(crate) fn new(limit: &Limit) -> Self {
        let burst = limit.quota.burst();
        let (tokens, born) = match limit.start {
            Start::Empty => (burst, nanos(limit.born)),
            _ => (0, 0),
        };
        let interval = limit.quota.interval().map(|interval| interval.as_nanos());
        let shapes = limit.kind == AlgorithmKind::LeakyShaper;
        Self { burst, interval, start: Debt { tokens: whole(tokens), at: born }, shapes }
    }
}

impl Rule for TokenBucket {
    type State = Debt;

    fn limit(&self) -> u64 {
        self.burst
    }

    /// Two bursts, or as many tokens as fall in 2⁶² nanoseconds if that is less.
    fn deepest(&self) -> u64 {
        let longest = fraction(1 << 62, self.interval.unwrap_or(1));
        (2 * self.burst).min(floor(&longest))
    }

    fn fresh(&self, idle_at: Nanos) -> Debt {
        if self.spent(&self.start, idle_at) > whole(0) {
            return self.start.clone();
        }
        Debt { tokens: whole(0), at: idle_at }
    }

    fn spent(&self, debt: &Debt, now: Nanos) -> Rational {
        let Some(interval) = self.interval else {
            return debt.tokens.clone();
        };
        // Negative if time has gone back: then what had fallen since is missing again.
        let fallen = fraction(difference(now, debt.at), interval);
        (&debt.tokens - fallen).max(whole(0))
    }

    fn take(&self, debt: &Debt, now: Nanos, amount: u64) -> Debt {
        Debt { tokens: self.spent(debt, now) + whole(amount), at: now }
    }

    fn refund(&self, debt: &Debt, now: Nanos, amount: u64) -> Debt {
        let spent = self.spent(debt, now);
        if spent == whole(0) {
            return debt.clone();
        }
        // Not beyond what a caller never seen would have.
        let least = self.spent(&self.start, now);
        Debt { tokens: (spent - whole(amount)).max(least), at: now }
    }

    fn wait(&self, before: &Debt, now: Nanos) -> Duration {
        let Some(interval) = self.interval.filter(|_| self.shapes) else { return Duration::ZERO };
        let refill = self.spent(before, now) * fraction(interval as i128, 1);
        Duration::from_nanos(floor(&refill.ceil()))
    }
}
