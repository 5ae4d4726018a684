//! Whether a change is stricter or looser.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde::Serialize;
use spillgate::Quota;

/// What a change means for those whom it affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Effect {
    /// No more is allowed than before, and at times less.
    Stricter,
    /// No less is allowed than before, and at times more.
    Looser,
    /// Neither can be said: it depends on the caller or the moment.
    Different,
}

impl Effect {
    /// `stricter`, `looser` or `different`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stricter => "stricter",
            Self::Looser => "looser",
            Self::Different => "different",
        }
    }
}

/// How strict a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// It cannot be compared.
    Nothing,
    /// The more, the looser: at once, and over a period.
    Amount { burst: u64, amount: u64, period: u64 },
    /// The more, the stricter.
    Strictness(u64),
    /// Any of these is enough to meet the limit: the more, the stricter. None stands for all.
    AnyOf(BTreeSet<String>),
    /// The more, the looser: conditions that all must hold, or what is counted apart.
    AllOf(BTreeSet<String>),
}

impl Measure {
    pub(super) fn quota(quota: &Quota) -> Self {
        let period = quota.period().map_or(1, |period| period.as_nanos() as u64);
        Self::Amount { burst: quota.burst(), amount: quota.amount(), period }
    }

    /// What lets nothing through.
    pub(super) fn closed() -> Self {
        Self::Amount { burst: 0, amount: 0, period: 1 }
    }

    /// What a change from this to another means.
    pub(super) fn effect(&self, new: &Self) -> Effect {
        let strictness = match (self, new) {
            (
                Self::Amount { burst, amount, period },
                Self::Amount { burst: new_burst, amount: new_amount, period: new_period },
            ) => {
                let product = |a: &u64, b: &u64| u128::from(*a) * u128::from(*b);
                let rates = product(new_amount, period).cmp(&product(amount, new_period));
                together(burst.cmp(new_burst), rates.reverse())
            }
            (Self::Strictness(old), Self::Strictness(new)) => Some(new.cmp(old)),
            (Self::AnyOf(old), Self::AnyOf(new)) => match (old.is_empty(), new.is_empty()) {
                (true, false) => Some(Ordering::Less),
                (false, true) => Some(Ordering::Greater),
                _ => inclusion(new, old),
            },
            (Self::AllOf(old), Self::AllOf(new)) => inclusion(old, new),
            _ => None,
        };
        match strictness {
            Some(Ordering::Greater) => Effect::Stricter,
            Some(Ordering::Less) => Effect::Looser,
            Some(Ordering::Equal) | None => Effect::Different,
        }
    }
}

/// Both orders, unless they contradict each other.
fn together(one: Ordering, other: Ordering) -> Option<Ordering> {
    match (one, other) {
        (Ordering::Equal, order) | (order, Ordering::Equal) => Some(order),
        _ => (one == other).then_some(one),
    }
}

/// Which of two sets holds the other.
fn inclusion(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Option<Ordering> {
    match (one.is_superset(other), other.is_superset(one)) {
        (true, true) => Some(Ordering::Equal),
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(quota: &str) -> Measure {
        Measure::quota(&quota.parse().unwrap())
    }

    fn set(words: &str) -> BTreeSet<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_quota_is_stricter_if_neither_burst_nor_rate_is_more() {
        for (old, new, effect) in [
            ("10/s", "5/s", Effect::Stricter),
            ("10/s burst 20", "10/s burst 5", Effect::Stricter),
            ("10/s burst 20", "20/s burst 20", Effect::Looser),
            ("10/s burst 20", "20/s burst 5", Effect::Different),
            ("10/s", "600/min burst 10", Effect::Different),
            ("10/s", "600/min", Effect::Looser),
            ("600/min", "10/s", Effect::Stricter),
            ("burst 5", "5/day", Effect::Looser),
        ] {
            assert_eq!(amount(old).effect(&amount(new)), effect, "{old} → {new}");
        }
        assert_eq!(amount("1/day").effect(&Measure::closed()), Effect::Stricter);
        assert_eq!(amount("1/day").effect(&Measure::Nothing), Effect::Different);
    }

    #[test]
    fn more_ways_to_meet_a_limit_are_stricter_and_more_conditions_looser() {
        for (old, new, any_of, all_of) in [
            ("a", "a b", Effect::Stricter, Effect::Looser),
            ("a b", "b", Effect::Looser, Effect::Stricter),
            ("a", "b", Effect::Different, Effect::Different),
            // No alternative stands for every request, and no condition for none.
            ("", "a", Effect::Looser, Effect::Looser),
            ("a", "", Effect::Stricter, Effect::Stricter),
        ] {
            let (old, new) = (set(old), set(new));
            let effect = Measure::AnyOf(old.clone()).effect(&Measure::AnyOf(new.clone()));
            assert_eq!(effect, any_of, "{old:?} → {new:?}");
            assert_eq!(Measure::AllOf(old).effect(&Measure::AllOf(new)), all_of);
        }
        let dearer = Measure::Strictness(1).effect(&Measure::Strictness(2));
        assert_eq!(dearer, Effect::Stricter);
    }
}
