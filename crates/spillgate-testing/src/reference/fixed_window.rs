use std::time::Duration;

use num_rational::BigRational as Rational;
use spillgate::Quota;

use super::Rule;
use crate::exact::{Nanos, whole};

/// A count for each window of the clock.
#[derive(Clone)]
pub(crate) struct FixedWindow {
    limit: u64,
    length: Nanos,
}

/// The last window in which the caller was written.
#[derive(Clone)]
pub(crate) struct Window {
    number: Nanos,
    count: u64,
}

impl FixedWindow {
    pub(crate) fn new(quota: &Quota, length: Duration) -> Self {
        Self { limit: quota.burst(), length: length.as_nanos() }
    }

    /// The window that counts at `now`: not one before the caller's own.
    fn current(&self, caller: &Window, now: Nanos) -> Window {
        let number = now / self.length;
        if number > caller.number { Window { number, count: 0 } } else { caller.clone() }
    }
}

impl Rule for FixedWindow {
    type State = Window;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn fresh(&self, idle_at: Nanos) -> Window {
        Window { number: idle_at / self.length, count: 0 }
    }

    fn spent(&self, caller: &Window, now: Nanos) -> Rational {
        whole(self.current(caller, now).count)
    }

    fn take(&self, caller: &Window, now: Nanos, amount: u64) -> Window {
        let Window { number, count } = self.current(caller, now);
        Window { number, count: count + amount }
    }

    fn refund(&self, caller: &Window, now: Nanos, amount: u64) -> Window {
        let Window { number, count } = self.current(caller, now);
        Window { number, count: count.saturating_sub(amount) }
    }
}
