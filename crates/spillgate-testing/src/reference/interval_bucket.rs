use num_rational::BigRational as Rational;
use spillgate::algorithm::IntervalBucket as RealBucket;
use spillgate::{Start, Timestamp};

use super::{Rule, carried};
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
    /// A client never seen.
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
            Start::Full => Refilled { at: 0, spent: 0 },
            Start::Empty => Refilled { at: period_from(nanos(limit.born), step), spent: burst },
        };
        Self {
            amount: limit.quota.amount(),
            burst,
            period: period.as_nanos(),
            step,
            is_exact: real.tells_debts_exactly(),
            start,
        }
    }

    /// True if periods are equally long, but for how they are rounded up to steps.
    fn is_as_long_as(&self, other: &Self) -> bool {
        self.period.abs_diff(other.period) < self.step.max(other.step)
    }

    /// True if time went back behind a debtor's last refill, by more than a step.
    fn is_behind(&self, client: &Refilled, now: Nanos) -> bool {
        client.spent > self.burst && client.at > round_up(now, self.step) + self.step
    }

    /// The client after every refill that is due. If time went back behind a debtor's last
    /// refills, those are missing again.
    fn refilled(&self, client: &Refilled, now: Nanos) -> Refilled {
        if self.is_behind(client, now) && self.is_exact {
            let ahead = client.at - round_up(now, self.step);
            let undone = ahead.div_ceil(self.period).min(client.at / self.period);
            let spent = Nanos::from(client.spent) + undone * Nanos::from(self.amount);
            return Refilled { at: client.at - undone * self.period, spent: spent as u64 };
        }
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
        Refilled { at: period_from(idle_at, self.step), spent: 0 }
    }

    fn spent(&self, client: &Refilled, now: Nanos) -> Rational {
        whole(self.refilled(client, now).spent)
    }

    fn take(&self, client: &Refilled, now: Nanos, amount: u64) -> Refilled {
        let Refilled { at, spent } = self.refilled(client, now);
        // Whoever finds the bucket full begins a period, but none before the last.
        let at = if spent == 0 { at.max(period_from(now, self.step)) } else { at };
        Refilled { at, spent: spent + amount }
    }

    fn give_back(&self, client: &Refilled, now: Nanos, amount: u64) -> Refilled {
        let Refilled { at, spent } = self.refilled(client, now);
        // Not beyond what a client never seen would have; nor below the burst while a debt
        // cannot be told.
        let least = self.refilled(&self.start, now).spent;
        let is_behind = self.is_behind(&Refilled { at, spent }, now);
        let least = if is_behind { least.max(self.burst) } else { least };
        match spent.saturating_sub(amount).max(least) {
            left if left < spent => Refilled { at, spent: left },
            _ => client.clone(),
        }
    }

    fn carry_over(&self, client: &Refilled, now: Nanos, old: &Self) -> Refilled {
        let Refilled { at, spent } = old.refilled(client, now);
        let at = if self.is_as_long_as(old) { at } else { now };
        Refilled { at: period_from(at, self.step), spent: carried(spent, old.burst, self.burst) }
    }

    fn keep(&self, client: &Refilled, now: Nanos, old: &Self) -> Refilled {
        let rule = |it: &Self| (it.amount, it.burst, it.period, it.step);
        if rule(self) == rule(old) {
            return client.clone();
        }
        if client.at > round_up(now, old.step) {
            return Refilled { at: period_from(client.at, self.step), ..client.clone() };
        }
        let Refilled { at, spent } = old.refilled(client, now);
        let at = if self.is_as_long_as(old) { at } else { now };
        Refilled { at: period_from(at, self.step), spent }
    }

    fn slower(&self, other: &Self) -> Self {
        Self { amount: self.amount.min(other.amount), ..self.clone() }
    }

    /// Refills that are due are those of the tier that asks.
    fn in_tier(&self, client: &Refilled, _: Nanos, _: &Self) -> Refilled {
        client.clone()
    }

    fn give_back_charged(
        &self,
        client: &Refilled,
        now: Nanos,
        amount: u64,
        charged: &Refilled,
    ) -> Refilled {
        self.give_back(client, now, amount.min(self.refilled(charged, now).spent))
    }
}

/// When a period begins: at a multiple of the step, and not after the end of time.
fn period_from(now: Nanos, step: Nanos) -> Nanos {
    let last = nanos(Timestamp::MAX) / step * step;
    round_up(now, step).min(last)
}
