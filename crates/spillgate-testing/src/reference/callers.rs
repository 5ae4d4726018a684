use std::collections::BTreeMap;
use std::time::Duration;

use spillgate::{Timestamp, Verdict};

use super::{Reference, Rule};
use crate::exact::{Nanos, floor, nanos, time_until, whole};
use crate::{Observed, Subject};

/// Many callers under one rule.
pub(crate) struct Callers<R: Rule> {
    rule: R,
    known: BTreeMap<String, R::State>,
}

impl<R: Rule> Callers<R> {
    pub(crate) fn new(rule: R) -> Self {
        Self { rule, known: BTreeMap::new() }
    }

    fn state(&self, key: &str) -> R::State {
        self.known.get(key).cloned().unwrap_or_else(|| self.rule.fresh(0))
    }

    /// Remembers a caller, unless it was not known and there is nothing to remember.
    fn remember(&mut self, key: &str, now: Nanos, state: R::State) {
        if self.known.contains_key(key) || !self.is_idle(&state, now) {
            self.known.insert(key.to_owned(), state);
        }
    }

    fn is_idle(&self, state: &R::State, now: Nanos) -> bool {
        self.rule.spent(state, now) == whole(0)
    }

    /// A cost of zero always passes; any other if what is spent leaves room for it.
    fn passes(&self, state: &R::State, now: Nanos, cost: u64) -> bool {
        let total = self.rule.spent(state, now) + whole(cost);
        cost == 0 || total <= whole(self.rule.limit())
    }

    /// The answer to a call by a caller in the state `before`, and its state after that: the
    /// result of `spend`, if the call is allowed.
    fn answer(
        &self,
        before: &R::State,
        cost: u64,
        now: Nanos,
        spend: impl Fn(&R::State) -> R::State,
    ) -> (Observed, R::State) {
        let retry_after = time_until(now, |at| self.passes(before, at, cost));
        let (verdict, wait, after) = match retry_after {
            Some(Duration::ZERO) => (Verdict::Allowed, self.rule.wait(before, now), spend(before)),
            Some(retry_after) => (Verdict::Denied { retry_after }, Duration::ZERO, before.clone()),
            None => (Verdict::Never, Duration::ZERO, before.clone()),
        };
        let limit = self.rule.limit();
        let observed = Observed {
            verdict,
            limit,
            remaining: floor(&(whole(limit) - self.rule.spent(&after, now))),
            retry_after,
            reset_after: time_until(now, |at| self.is_idle(&after, at)),
            wait,
        };
        (observed, after)
    }
}

impl<R: Rule> Subject for Callers<R> {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        let (before, now) = (self.state(key), nanos(now));
        if cost == 0 {
            return self.answer(&before, cost, now, R::State::clone).0;
        }
        let spend = |state: &R::State| self.rule.take(state, now, cost);
        let (observed, after) = self.answer(&before, cost, now, spend);
        if observed.is_allowed() {
            self.remember(key, now, after);
        }
        observed
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.answer(&self.state(key), cost, nanos(now), R::State::clone).0
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        let now = nanos(now);
        let after = self.rule.take(&self.state(key), now, amount);
        self.remember(key, now, after);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        // A new caller has spent nothing.
        if let Some(state) = self.known.get_mut(key) {
            *state = self.rule.refund(state, nanos(now), amount);
        }
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        // A new caller has nothing to forget.
        if let Some(state) = self.known.get_mut(key) {
            *state = self.rule.fresh(nanos(now));
        }
    }
}

impl<R: Rule> Reference for Callers<R> {
    fn room_for_debt(&self, key: &str, now: Timestamp) -> u64 {
        let spent = self.rule.spent(&self.state(key), nanos(now));
        floor(&(whole(self.rule.deepest()) - spent))
    }
}
