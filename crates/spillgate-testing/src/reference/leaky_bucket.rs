use std::time::Duration;

use num_rational::BigRational as Rational;
use spillgate::AlgorithmKind;

use super::token_bucket::{Debt, TokenBucket};
use super::{Nanos, Rule};
use crate::Limit;
use crate::exact::floor;

/// A queue: what waits in it is what a token bucket would owe.
#[derive(Clone)]
pub(crate) struct LeakyBucket {
    bucket: TokenBucket,
    shapes: bool,
}

impl LeakyBucket {
    pub(crate) fn new(limit: &Limit) -> Self {
        let shapes = limit.kind == AlgorithmKind::LeakyShaper;
        Self { bucket: TokenBucket::new(limit), shapes }
    }
}

impl Rule for LeakyBucket {
    type State = Debt;

    fn limit(&self) -> u64 {
        self.bucket.limit()
    }

    fn deepest(&self) -> u64 {
        self.bucket.deepest()
    }

    fn fresh(&self, idle_at: Nanos) -> Debt {
        self.bucket.fresh(idle_at)
    }

    fn spent(&self, debt: &Debt, now: Nanos) -> Rational {
        self.bucket.spent(debt, now)
    }

    fn take(&self, debt: &Debt, now: Nanos, amount: u64) -> Debt {
        self.bucket.take(debt, now, amount)
    }

    fn take_up_to(&self, debt: &Debt, now: Nanos, amount: u64, most: u64) -> Debt {
        self.bucket.take_up_to(debt, now, amount, most)
    }

    fn refund(&self, debt: &Debt, now: Nanos, amount: u64) -> Debt {
        self.bucket.refund(debt, now, amount)
    }

    fn carry_over(&self, debt: &Debt, now: Nanos, old: &Self) -> Debt {
        self.bucket.carry_over(debt, now, &old.bucket)
    }

    fn worth(&self, tokens: u64, other: &Self) -> u64 {
        self.bucket.worth(tokens, &other.bucket)
    }

    fn slower(&self, _other: &Self) -> Self {
        self.clone()
    }

    fn keep(&self, debt: &Debt, now: Nanos, old: &Self) -> Debt {
        self.bucket.keep(debt, now, &old.bucket)
    }

    fn refund_call(&self, debt: &Debt, now: Nanos, amount: u64, spent: &Debt) -> Debt {
        self.bucket.refund_call(debt, now, amount, spent)
    }

    /// A call's turn comes when everything that was there before it has left.
    fn wait(&self, before: &Debt, now: Nanos) -> Duration {
        if !self.shapes {
            return Duration::ZERO;
        }
        Duration::from_nanos(floor(&self.bucket.backlog(before, now).ceil()))
    }
}
