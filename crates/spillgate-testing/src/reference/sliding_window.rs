use std::collections::BTreeMap;

use num_rational::BigRational as Rational;
use spillgate::Quota;

use super::Rule;
use crate::exact::{Nanos, difference, fraction, whole};

/// A count for each window of the clock, of which the last two count.
#[derive(Clone)]
pub(crate) struct SlidingWindow {
    limit: u64,
    period: Nanos,
}

/// The calls of every window, and the last window in which the caller was written.
#[derive(Clone)]
pub(crate) struct Windows {
    calls: BTreeMap<Nanos, u64>,
    last: Nanos,
}

impl Windows {
    fn calls_in(&self, window: Option<Nanos>) -> u64 {
        window.and_then(|window| self.calls.get(&window)).copied().unwrap_or(0)
    }
}

impl SlidingWindow {
    pub(crate) fn new(quota: &Quota) -> Self {
        // A limit has either a period, or an algorithm that needs none.
        let period = quota.period().map_or(1, |period| period.as_nanos());
        Self { limit: quota.burst(), period }
    }

    /// The window that counts at `now`: not one before the caller's own.
    fn current(&self, caller: &Windows, now: Nanos) -> Nanos {
        caller.last.max(now / self.period)
    }

    /// The caller after the calls of its current window have become `changed`.
    fn with(&self, caller: &Windows, now: Nanos, changed: impl Fn(u64) -> u64) -> Windows {
        let window = self.current(caller, now);
        let mut calls = caller.calls.clone();
        calls.insert(window, changed(caller.calls_in(Some(window))));
        Windows { calls, last: window }
    }
}

impl Rule for SlidingWindow {
    type State = Windows;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn fresh(&self, idle_at: Nanos) -> Windows {
        Windows { calls: BTreeMap::new(), last: idle_at / self.period }
    }

    /// Of the previous window counts the part that a period ending now still covers.
    fn spent(&self, caller: &Windows, now: Nanos) -> Rational {
        let window = self.current(caller, now);
        let elapsed = fraction(difference(now, window * self.period), self.period).max(whole(0));
        let previous = whole(caller.calls_in(window.checked_sub(1)));
        whole(caller.calls_in(Some(window))) + previous * (whole(1) - elapsed)
    }

    fn take(&self, caller: &Windows, now: Nanos, amount: u64) -> Windows {
        self.with(caller, now, |calls| calls + amount)
    }

    fn refund(&self, caller: &Windows, now: Nanos, amount: u64) -> Windows {
        self.with(caller, now, |calls| calls.saturating_sub(amount))
    }
}
