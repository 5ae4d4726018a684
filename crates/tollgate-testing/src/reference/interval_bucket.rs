use std::time::Duration;

use num_rational::BigRational as Rational;
use tollgate::Start;

use super::Rule;
use crate::Limit;
use crate::exact::{Nanos, nanos, round_up, whole};

/// `amount` tokens that fall at once, every `period`.
pub(super) struct IntervalBucket {
    amount: u64,
    burst: u64,
    period: Nanos,
    /// Periods begin at multiples of this.
    step: Nanos,
    /// A client never seen.
    start: Refilled,
}

/// How many tokens were missing after the last refill.
#[derive(Clone)]
pub(super) struct Refilled {
    at: Nanos,
    spent: u64,
}

impl IntervalBucket {
    pub(super) fn new(limit: &Limit, period: Duration, step: Duration) -> Self {
        let burst = limit.quota.burst();
        let step = step.as_nanos();
        let start = match limit.start {
            Start::Full => Refilled { at: 0, spent: 0 },
            Start::Empty => Refilled { at: round_up(nanos(limit.born), step), spent: burst },
        };
        Self { amount: limit.quota.amount(), burst, period: period.as_nanos(), step, start }
    }

    /// The client after every refill that is due.
    fn refilled(&self, client: &Refilled, now: Nanos) -> Refilled {
        let refills = now.saturating_sub(client.at) / self.period;
        let missing = Nanos::from(client.spent).saturating_sub(refills * Nanos::from(self.amount));
        Refilled { at: client.at + refills * self.period, spent: missing as u64 }
    }
}

impl Rule for IntervalBucket {
    type State = Refilled;

    fn limit(&self) -> u64 {
        self.burst
    }

    fn fresh(&self, idle_at: Nanos) -> Refilled {
        if self.refilled(&self.start, idle_at).spent > 0 {
            return self.start.clone();
        }
        Refilled { at: round_up(idle_at, self.step), spent: 0 }
    }

    fn spent(&self, client: &Refilled, now: Nanos) -> Rational {
        whole(self.refilled(client, now).spent)
    }

    fn take(&self, client: &Refilled, now: Nanos, amount: u64) -> Refilled {
        let Refilled { at, spent } = self.refilled(client, now);
        // Whoever finds the bucket full begins a period, but none before the last.
        let at = if spent == 0 { at.max(round_up(now, self.step)) } else { at };
        Refilled { at, spent: spent + amount }
    }

    fn give_back(&self, client: &Refilled, now: Nanos, amount: u64) -> Refilled {
        let Refilled { at, spent } = self.refilled(client, now);
        // Not beyond what a client never seen would have.
        let least = self.refilled(&self.start, now).spent;
        match spent.saturating_sub(amount).max(least) {
            left if left < spent => Refilled { at, spent: left },
            _ => client.clone(),
        }
    }
}
