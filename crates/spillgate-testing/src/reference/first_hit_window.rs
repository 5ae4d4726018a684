use std::time::Duration;

use num_rational::BigRational as Rational;
use spillgate::Quota;

use super::Rule;
use crate::exact::{Nanos, round_up, whole};

/// A count for a window that begins with the first call after the last one ended.
#[derive(Clone)]
pub(crate) struct FirstHitWindow {
    limit: u64,
    length: Nanos,
    /// Windows begin at multiples of this.
    step: Nanos,
}

/// The window of the last call.
#[derive(Clone)]
pub(crate) struct Window {
    begin: Nanos,
    count: u64,
}

impl FirstHitWindow {
    pub(crate) fn new(quota: &Quota, length: Duration, step: Duration) -> Self {
        Self { limit: quota.burst(), length: length.as_nanos(), step: step.as_nanos() }
    }

    /// The window that a call at `now` belongs to: a new one if the last is over,
    /// or if no call is left in it; but never one that begins before the last.
    fn current(&self, caller: &Window, now: Nanos) -> Window {
        if caller.count > 0 && now < caller.begin + self.length {
            return caller.clone();
        }
        Window { begin: caller.begin.max(round_up(now, self.step)), count: 0 }
    }
}

impl Rule for FirstHitWindow {
    type State = Window;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn fresh(&self, idle_at: Nanos) -> Window {
        Window { begin: round_up(idle_at, self.step), count: 0 }
    }

    fn spent(&self, caller: &Window, now: Nanos) -> Rational {
        whole(self.current(caller, now).count)
    }

    fn take(&self, caller: &Window, now: Nanos, amount: u64) -> Window {
        let Window { begin, count } = self.current(caller, now);
        Window { begin, count: count + amount }
    }

    fn refund(&self, caller: &Window, now: Nanos, amount: u64) -> Window {
        let Window { begin, count } = self.current(caller, now);
        Window { begin, count: count.saturating_sub(amount) }
    }
}
