use std::collections::BTreeMap;
use std::time::Duration;

use spillgate::algorithm::{Algorithm, AnyAlgorithm};
use spillgate::{AlgorithmKind, Quota, Start, Timestamp};

use super::{Caller, Moving, Quotas};
use crate::Limit;
use crate::exact::{Nanos, floor, nanos, time_until, whole};
use crate::reference::{
    FirstHitWindow, FixedWindow, IntervalBucket, Rule, SlidingWindow, TokenBucket,
};

/// The model of a limit whose state moves.
pub(super) trait Model: Moving {
    /// How much a caller could spend in a tier.
    fn remaining_in(&self, caller: Caller, now: Timestamp) -> u64;

    /// True if a caller owes more than a word may be able to represent.
    fn exceeds_count(&self, now: Timestamp) -> bool;

    /// Spends for a caller that was allowed to.
    fn spend(&mut self, caller: Caller, cost: u64, number: Option<usize>, now: Timestamp);
}

pub(super) fn model(kind: AlgorithmKind, quotas: &Quotas) -> Result<Box<dyn Model>, String> {
    use AlgorithmKind as Kind;
    Ok(match kind {
        Kind::IntervalBucket => Box::new(Callers::new(kind, quotas, |limit, real| match real {
            AnyAlgorithm::IntervalBucket(real) => IntervalBucket::new(limit, real),
            other => panic!("{other:?} is no interval bucket"),
        })?),
        Kind::FixedWindow => Box::new(Callers::new(kind, quotas, |limit, real| match real {
            AnyAlgorithm::FixedWindow(real) => FixedWindow::new(&limit.quota, real.length()),
            other => panic!("{other:?} is no window"),
        })?),
        Kind::FirstHitWindow => Box::new(Callers::new(kind, quotas, |limit, real| match real {
            AnyAlgorithm::FixedWindow(real) => {
                FirstHitWindow::new(&limit.quota, real.length(), real.resolution())
            }
            other => panic!("{other:?} is no window"),
        })?),
        Kind::SlidingWindow => {
            Box::new(Callers::new(kind, quotas, |limit, _| SlidingWindow::new(&limit.quota))?)
        }
        _ => Box::new(Callers::new(kind, quotas, |limit, _| TokenBucket::new(limit))?),
    })
}

/// Makes the rule of a quota, in the steps of the real one.
type Make<R> = fn(&Limit, &AnyAlgorithm) -> R;

/// A rule, with what the real one says of debts.
struct Ruled<R> {
    rule: R,
    quota: Quota,
    most: u64,
    /// Debts below this can be represented, whatever happens next.
    deep: u64,
}

struct Callers<R: Rule> {
    kind: AlgorithmKind,
    make: Make<R>,
    quotas: Quotas,
    /// The limit's own, then of each tier.
    rules: Vec<Ruled<R>>,
    known: BTreeMap<&'static str, Entry<R>>,
    open: BTreeMap<usize, Open<R>>,
}

/// The state of one caller.
struct Entry<R: Rule> {
    state: R::State,
    own: Option<Own<R>>,
}

/// A quota of its own, and what was spent under it. What was spent before stays in the entry's
/// own state.
struct Own<R: Rule> {
    ruled: Ruled<R>,
    state: R::State,
}

/// A call that is not settled.
struct Open<R: Rule> {
    caller: Caller,
    cost: u64,
    at: Nanos,
    /// What it was counted by, and what it left.
    quota: Quota,
    rule: R,
    state: R::State,
}

impl<R: Rule> Callers<R> {
    fn new(kind: AlgorithmKind, quotas: &Quotas, make: Make<R>) -> Result<Self, String> {
        let rules = ruled(kind, &quotas.all(), make)?;
        let (known, open) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { kind, make, quotas: quotas.clone(), rules, known, open })
    }

    fn alone(&self, quota: Quota) -> Ruled<R> {
        let ruled = ruled(self.kind, &[quota], self.make).map(|mut rules| rules.remove(0));
        ruled.unwrap_or_else(|why| panic!("{why}"))
    }

    fn tier(&self, caller: Caller) -> usize {
        let named = |tier| self.quotas.tiers.iter().position(|(name, _)| *name == tier);
        caller.tier.and_then(named).map_or(0, |tier| tier + 1)
    }

    fn entry(&mut self, key: &'static str) -> &mut Entry<R> {
        let fresh = self.rules[0].rule.fresh(0);
        self.known.entry(key).or_insert(Entry { state: fresh, own: None })
    }

    /// Changes what a caller has spent by the rule that it is counted by.
    fn change(
        &mut self,
        caller: Caller,
        now: Nanos,
        change: impl Fn(&Ruled<R>, &R::State) -> R::State,
    ) {
        self.entry(caller.key);
        let rules = std::mem::take(&mut self.rules);
        let tier = self.tier(caller);
        let entry = self.entry_or_else(caller.key);
        match &mut entry.own {
            Some(own) => own.state = change(&own.ruled, &own.state),
            None => {
                // All tiers have one state: in the unit of the first.
                let seen = rules[tier].rule.in_tier(&entry.state, now, &rules[0].rule);
                let changed = change(&rules[tier], &seen);
                entry.state = rules[0].rule.in_tier(&changed, now, &rules[tier].rule);
            }
        }
        self.rules = rules;
    }

    fn entry_or_else(&mut self, key: &str) -> &mut Entry<R> {
        match self.known.get_mut(key) {
            Some(entry) => entry,
            None => panic!("{key} is known"),
        }
    }

    /// The rule by which a caller is counted, and its state.
    fn counted(&self, caller: Caller, now: Nanos) -> (&Ruled<R>, R::State) {
        let base = &self.rules[0];
        let tier = &self.rules[self.tier(caller)];
        match self.known.get(caller.key) {
            Some(Entry { own: Some(own), .. }) => (&own.ruled, own.state.clone()),
            Some(entry) => (tier, tier.rule.in_tier(&entry.state, now, &base.rule)),
            None => (tier, tier.rule.fresh(0)),
        }
    }
}

fn ruled<R: Rule>(
    kind: AlgorithmKind,
    quotas: &[Quota],
    make: Make<R>,
) -> Result<Vec<Ruled<R>>, String> {
    let (start, born) = (Start::Full, Timestamp::ZERO);
    let real = kind.with_quotas(quotas, start, born).map_err(|why| why.to_string())?;
    let of = |(quota, real): (&Quota, &AnyAlgorithm)| {
        let rule = make(&Limit { kind, quota: *quota, start, born }, real);
        let deep = match real {
            // What exceeds the count is owed in time, whatever the tier.
            AnyAlgorithm::IntervalBucket(_) if quotas.len() > 1 => 2 * quota.burst(),
            _ => real.deepest() / 16,
        };
        Ruled { rule, quota: *quota, most: real.most_owed(None), deep: deep.max(quota.burst()) }
    };
    Ok(quotas.iter().zip(&real).map(of).collect())
}

impl<R: Rule> Ruled<R> {
    fn remaining(&self, state: &R::State, now: Nanos) -> u64 {
        floor(&(whole(self.rule.limit()) - self.rule.spent(state, now)))
    }

    /// Takes what is owed, up to the bound.
    fn debit(&self, state: &R::State, now: Nanos, amount: u64) -> R::State {
        self.rule.take_up_to(state, now, amount, self.most)
    }
}

impl<R: Rule> Model for Callers<R> {
    fn remaining_in(&self, caller: Caller, now: Timestamp) -> u64 {
        let now = nanos(now);
        let (ruled, state) = self.counted(caller, now);
        ruled.remaining(&state, now)
    }

    fn exceeds_count(&self, now: Timestamp) -> bool {
        let now = nanos(now);
        let is_deep = |ruled: &Ruled<R>, state| ruled.rule.spent(state, now) > whole(ruled.deep);
        self.known.values().any(|entry| {
            is_deep(&self.rules[0], &entry.state)
                || entry.own.as_ref().is_some_and(|own| is_deep(&own.ruled, &own.state))
        })
    }

    fn spend(&mut self, caller: Caller, cost: u64, number: Option<usize>, now: Timestamp) {
        let now = nanos(now);
        self.change(caller, now, |ruled, state| ruled.rule.take(state, now, cost));
        let Some(number) = number else { return };
        let (ruled, state) = self.counted(caller, now);
        // By a rule of its own: that of the limit may change.
        let (quota, alone) = (ruled.quota, self.alone(ruled.quota));
        // In the tier that it had then, if that is still there.
        let tier = caller.tier.filter(|_| self.tier(caller) > 0);
        let caller = Caller { tier, ..caller };
        let open = Open { caller, cost, at: now, quota, rule: alone.rule, state };
        self.open.insert(number, open);
    }
}

impl<R: Rule> Moving for Callers<R> {
    fn check(&mut self, caller: Caller, cost: u64, now: Timestamp) -> (bool, u64) {
        let passes = self.remaining_in(caller, now) >= cost;
        if passes {
            self.spend(caller, cost, None, now);
        }
        (passes, self.remaining_in(caller, now))
    }

    fn reserve(&mut self, caller: Caller, cost: u64, number: usize, now: Timestamp) -> bool {
        let passes = self.remaining_in(caller, now) >= cost;
        if passes {
            self.spend(caller, cost, Some(number), now);
        }
        passes
    }

    fn settle(&mut self, number: usize, actual: u64, now: Timestamp) {
        let Some(open) = self.open.remove(&number) else { return };
        let (now, has_tiers) = (nanos(now), !self.quotas.tiers.is_empty());
        self.change(open.caller, now, |ruled, state| {
            if let Some(missing) = actual.checked_sub(open.cost) {
                return ruled.debit(state, now, missing);
            }
            let unused = open.cost - actual;
            let rule = &ruled.rule;
            if ruled.quota == open.quota {
                return rule.refund_call(state, now, unused, &open.state);
            }
            // Had the quota changed just now, or at once. Where time was kept and not tokens, what
            // took no time then gives no time back.
            let late = floor(&open.rule.spent(&open.state, now));
            let moved = rule.carry_over(&open.state, open.at, &open.rule);
            let worth = if has_tiers { rule.worth(unused, &open.rule) } else { unused };
            rule.refund_call(state, now, unused.min(late).min(worth), &moved)
        });
    }

    fn debit(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        let now = nanos(now);
        let caller = Caller { key, tier: None };
        self.change(caller, now, |ruled, state| ruled.debit(state, now, amount));
    }

    fn refund(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        let now = nanos(now);
        let caller = Caller { key, tier: None };
        self.change(caller, now, |ruled, state| ruled.rule.refund(state, now, amount));
    }

    fn reset(&mut self, key: &'static str, now: Timestamp) {
        let fresh = self.rules[0].rule.fresh(nanos(now));
        let entry = self.entry(key);
        entry.state = fresh;
        if let Some(own) = &mut entry.own {
            own.state = own.ruled.rule.fresh(nanos(now));
        }
    }

    fn set_override(&mut self, key: &'static str, quota: Option<Quota>, now: Timestamp) {
        let now = nanos(now);
        let (ruled, state) = self.counted(Caller { key, tier: None }, now);
        let Some(quota) = quota else {
            let carried = self.rules[0].rule.carry_over(&state, now, &ruled.rule);
            // What is spent, and if that is even, for how long.
            let spent = |state: &R::State| {
                let rule = &self.rules[0].rule;
                let idle = time_until(now, |at| rule.spent(state, at) == whole(0));
                (rule.spent(state, now), idle.unwrap_or(Duration::MAX))
            };
            let Some(entry) = self.known.get(key).filter(|entry| entry.own.is_some()) else {
                return;
            };
            let is_stricter = spent(&carried) > spent(&entry.state);
            let entry = self.entry(key);
            entry.own = None;
            if is_stricter {
                entry.state = carried;
            }
            return;
        };
        let own = self.alone(quota);
        let state = match ruled.quota == quota {
            true => own.rule.keep(&state, now, &ruled.rule),
            false => own.rule.carry_over(&state, now, &ruled.rule),
        };
        self.entry(key).own = Some(Own { ruled: own, state });
    }

    fn reload(&mut self, quotas: &Quotas, now: Timestamp) -> bool {
        if self.quotas == *quotas {
            return true;
        }
        let now = nanos(now);
        let rules = ruled(self.kind, &quotas.all(), self.make);
        let rules = rules.unwrap_or_else(|why| panic!("{why}"));
        let slowest = |rule: R, other: &Ruled<R>| rule.slower(&other.rule);
        let old = self.rules.iter().fold(self.rules[0].rule.slower(&self.rules[0].rule), slowest);
        let (old, new) = (&old, &rules[0].rule);
        // Tiers of callers are unknown, so only limits without tiers carry tokens over.
        let is_kept = !self.quotas.tiers.is_empty() || self.quotas.base == quotas.base;
        for entry in self.known.values_mut() {
            entry.state = match is_kept {
                true => new.keep(&entry.state, now, old),
                false => new.carry_over(&entry.state, now, old),
            };
        }
        (self.rules, self.quotas) = (rules, quotas.clone());
        true
    }

    /// Nothing is forgotten.
    fn restart(&mut self, _: Timestamp) {
        self.open.clear();
    }

    fn remaining(&mut self, key: &'static str, now: Timestamp) -> u64 {
        self.remaining_in(Caller { key, tier: None }, now)
    }
}
