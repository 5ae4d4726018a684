use num_rational::BigRational as Rational;
use spillgate::algorithm::IntervalBucket as RealBucket;
use spillgate::{Start, Timestamp};

use super::Rule;
use crate::Limit;
use crate::exact::{Nanos, nanos, round_up, whole};

/// `amount` tokens that fall at once, every `period`.
#[derive(Clone)]
pub(crate) struct IntervalBucket {
    amount: u64,
    burst: u64,
    period: Nanos,
    /// Periods begin at multiples of this.
    step: Nanos,
    /// False if refills are so large that a word cannot tell by refills yet to come how deep a
    /// debt is.
    is_exact: bool,
    /// A caller never seen.
    start: Refilled,
}

/// How many tokens were missing after the last refill.
#[derive(Clone)]
pub(crate) struct Refilled {
    at: Nanos,
    spent: u64,
}

impl IntervalBucket {
    pub(crate) fn new(limit: &Limit, real: &RealBucket) -> Self {
        let burst = limit.quota.burst();
        let (period, step) = (real.period(), real.resolution().as_nanos());
        let start = match limit.start {
            Start::Empty => Refilled { at: period_from(nanos(limit.born), step), spent: burst },
            _ => Refilled { at: 0, spent: 0 },
        };
        Self {
            amount: limit.quota.amount(),
            burst,
            period: period.as_nanos(),
            step,
            is_exact: real.counts_debt_exactly(),
            start,
        }
    }

    /// True if time went back behind a debtor's last refill, by more than a step.
    fn is_behind(&self, caller: &Refilled, now: Nanos) -> bool {
        caller.spent > self.burst && caller.at > round_up(now, self.step) + self.step
    }

    /// The caller after every refill that is due. If time went back behind a debtor's last
    /// refills, those are missing again.
    fn refilled(&self, caller: &Refilled, now: Nanos) -> Refilled {
        if self.is_behind(caller, now) && self.is_exact {
            let ahead = caller.at - round_up(now, self.step);
            let undone = ahead.div_ceil(self.period).min(caller.at / self.period);
            let spent = Nanos::from(caller.spent) + undone * Nanos::from(self.amount);
            return Refilled { at: caller.at - undone * self.period, spent: spent as u64 };
        }
        let refills = now.saturating_sub(caller.at) / self.period;
        let missing = Nanos::from(caller.spent).saturating_sub(refills * Nanos::from(self.amount));
        Refilled { at: caller.at + refills * self.period, spent: missing as u64 }
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
        Refilled { at: period_from(idle_at, self.step), spent: 0 }
    }

    fn spent(&self, caller: &Refilled, now: Nanos) -> Rational {
        whole(self.refilled(caller, now).spent)
    }

    fn take(&self, caller: &Refilled, now: Nanos, amount: u64) -> Refilled {
        let Refilled { at, spent } = self.refilled(caller, now);
        // Whoever finds the bucket full begins a period, but none before the last.
        let at = if spent == 0 { at.max(period_from(now, self.step)) } else { at };
        Refilled { at, spent: spent + amount }
    }

    fn refund(&self, caller: &Refilled, now: Nanos, amount: u64) -> Refilled {
        let Refilled { at, spent } = self.refilled(caller, now);
        // Not beyond what a caller never seen would have; nor below the burst while a debt
        // cannot be told.
        let least = self.refilled(&self.start, now).spent;
        let is_behind = self.is_behind(&Refilled { at, spent }, now);
        let least = if is_behind { least.max(self.burst) } else { least };
        match spent.saturating_sub(amount).max(least) {
            left if left < spent => Refilled { at, spent: left },
            _ => caller.clone(),
        }
    }
}

/// When a period begins: at a multiple of the step, and not after the end of time.
fn period_from(now: Nanos, step: Nanos) -> Nanos {
    let last = nanos(Timestamp::MAX) / step * step;
    round_up(now, step).min(last)
}
