//! What becomes of a caller when the quota changes under it.

use std::time::Duration;

use proptest::prelude::*;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, SlidingWindow};
use spillgate::{Quota, Timestamp};
use spillgate_testing::{Limit, strategy};

use crate::algorithms::situation::{Situation, lived};

/// A caller, and the algorithm of the same kind that it is to be carried over to.
#[derive(Clone, Debug)]
struct Change {
    caller: Situation,
    to: Limit,
    new: AnyAlgorithm,
}

/// Changes to any other quota, half of them of the same period.
fn changes() -> impl Strategy<Value = Change> {
    (lived(), strategy::quotas(), any::<bool>()).prop_filter_map(
        "countable",
        |(caller, quota, alike)| {
            let Limit { kind, quota: old, start, born } = caller.limit;
            let quota = if alike { with_period_of(&old, &quota)? } else { quota };
            let to = strategy::limit_of(kind, quota, start, born)?;
            Some(Change { new: to.algorithm().ok()?, caller, to })
        },
    )
}

fn with_period_of(one: &Quota, other: &Quota) -> Option<Quota> {
    Quota::per(other.amount(), one.period()?).burst(other.burst()).build().ok()
}

impl Change {
    fn is_bucket(&self) -> bool {
        matches!(self.new, AnyAlgorithm::TokenBucket(_) | AnyAlgorithm::LeakyBucket(_))
    }

    /// What is spent under the old quota, and what after the change.
    fn spent(&self) -> (u64, u64) {
        let Self { caller, new, .. } = self;
        let carried = new.carry_over(caller.word, caller.now, &caller.algorithm);
        (caller.algorithm.spent(caller.word, caller.now), new.spent(carried, caller.now))
    }
}

/// How many of a bucket's nanoseconds are a token.
fn interval(quota: &Quota) -> u128 {
    quota.interval().map_or(1, |interval| interval.as_nanos())
}

#[test]
fn a_sliding_window_keeps_what_its_previous_window_weighs() {
    let window = |text: &str| SlidingWindow::new(&text.parse().unwrap()).unwrap();
    let (old, new) = (window("20/s"), window("10/s"));
    let start = Timestamp::from_secs(1_700_000_000);
    let word = old.spend(old.fresh(Timestamp::ZERO), start, 20).unwrap();
    // 20·(1 - 1/2) = 10, which is all that the new limit has.
    let now = start + Duration::from_millis(1_500);
    assert_eq!(old.spent(word, now), 10);
    assert_eq!(new.remaining(new.carry_over(word, now, &old), now), 0);
}

#[test]
fn a_sliding_window_never_keeps_bits_that_mean_something_else() {
    let window = |text: &str| SlidingWindow::new(&text.parse().unwrap()).unwrap();
    let (old, new) = (window("1024 per 4194304 ns"), window("2 per 16 ns"));
    // In the first window of all, both would write a caller at rest as 0.
    let now = Timestamp::from_nanos(1);
    let idle = old.fresh(now);
    let carried = new.carry_over(idle, now, &old);
    assert_ne!(carried, idle);
    assert_eq!(new.remaining(carried, now), 2);
}

proptest! {
    #![proptest_config(strategy::cases(10_000))]

    #[test]
    fn a_bucket_owes_the_same_tokens_rounded_up_to_a_nanosecond(change in changes()) {
        if !change.is_bucket() {
            return Ok(());
        }
        let (owed, owes) = change.spent();
        let (old, new) = (interval(&change.caller.limit.quota), interval(&change.to.quota));
        let [old_burst, new_burst] =
            [&change.caller.limit.quota, &change.to.quota].map(|quota| u128::from(quota.burst()));
        // As fractions of a nanosecond: what is spent of the burst, but no more than the new
        // one has, and all that is owed beyond it.
        let within = u128::from(owed).min(old_burst * old);
        let beyond = u128::from(owed) - within;
        let exact = (within * new).min(new_burst * new * old) + beyond * new;
        let now = change.to.quota.period().map_or(0, |_| change.caller.now.as_nanos());
        let deepest = u128::from((1_u64 << 63) - now) * old;
        let (exact, carried) = (exact.min(deepest), u128::from(owes) * old);
        prop_assert!(carried >= exact, "{owed} ns of {old} became {owes} of {new}");
        // Rounded up, and one more where the word would otherwise not move.
        prop_assert!(carried < exact + 2 * old, "{owed} ns of {old} became {owes} of {new}");
    }

    #[test]
    fn the_same_quota_changes_no_bit(caller in lived()) {
        let old = caller.algorithm;
        prop_assert_eq!(old.carry_over(caller.word, caller.now, &old), caller.word);
        prop_assert_eq!(old.keep(caller.word, caller.now, &old), caller.word);
    }

    #[test]
    fn a_window_keeps_its_count(change in changes()) {
        let (had, has) = change.spent();
        let (old, new) = (change.caller.algorithm.limit(), change.new.limit());
        let all = had.min(old).min(new) + had.saturating_sub(old);
        let kept = all.min(change.new.deepest());
        match change.new {
            AnyAlgorithm::FixedWindow(_) => prop_assert_eq!(has, kept),
            AnyAlgorithm::IntervalBucket(bucket) => {
                // Where refills are too large, or time ends, nobody can tell how deep a debt is.
                let is_late = change.caller.now.as_nanos() > 1 << 61;
                if !bucket.counts_debt_exactly() || is_late {
                    prop_assert!(has >= kept.min(new + 1), "{had} became {has}");
                    return Ok(());
                }
                prop_assert!(has >= kept, "{had} became {has}, not {all}");
                let is_told = matches!(change.caller.algorithm, AnyAlgorithm::IntervalBucket(old)
                    if old.counts_debt_exactly());
                // A refill that has just been may be yet to come in coarser steps.
                let most = all + change.to.quota.amount();
                prop_assert!(has <= most || !is_told, "{had} became {has}, not {all}");
            }
            // The previous window is not cut at all.
            AnyAlgorithm::SlidingWindow(_) => {
                prop_assert!(has >= kept.min(new), "{had} became {has}");
            }
            _ => {}
        }
    }

    #[test]
    fn another_algorithm_starts_afresh(change in changes(), to in crate::algorithms::situation::limits()) {
        let Change { caller, .. } = change;
        let new = to.algorithm().unwrap();
        if std::mem::discriminant(&new) != std::mem::discriminant(&caller.algorithm) {
            let word = new.carry_over(caller.word, caller.now, &caller.algorithm);
            prop_assert_eq!(word, new.fresh(caller.now));
        }
    }

    /// A call that found the old quota can still be stored if the word has not
    /// moved. What it leaves behind must then count as if it had come first.
    #[test]
    fn a_call_that_overlaps_the_change_is_counted(change in changes()) {
        let Change { caller, new, .. } = &change;
        let (old, now) = (&caller.algorithm, caller.now);
        let moves = new.carry_over(caller.word, now, old) != caller.word;
        // An idle word moves back in time, which at the epoch it cannot.
        if moves || now == Timestamp::ZERO {
            return Ok(());
        }
        if let Some(late) = old.spend(caller.word, now, caller.cost) {
            let in_order = new.carry_over(late, now, old);
            let (has, should) = (new.spent(late, now), new.spent(in_order, now));
            prop_assert!(has >= should, "{has} spent rather than {should}");
        }
    }
}
