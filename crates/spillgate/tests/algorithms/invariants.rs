//! What holds for every algorithm, whatever the word.

use std::time::Duration;

use proptest::prelude::*;
use spillgate::algorithm::Algorithm;
use spillgate::{Decision, Start, Timestamp, Verdict};
use spillgate_testing::{Observed, strategy};

use crate::algorithms::situation::{Situation, lived, situations};

const NANOSECOND: Duration = Duration::from_nanos(1);

fn later(now: Timestamp, after: Duration) -> Option<Timestamp> {
    let moment = now + after;
    (moment.since(now) == after && moment < Timestamp::MAX).then_some(moment)
}

proptest! {
    #![proptest_config(strategy::cases(10_000))]

    #[test]
    fn a_denial_changes_nothing(caller in situations()) {
        let (decision, after) =
            Decision::of(caller.algorithm, caller.word, caller.now, caller.cost);
        if decision.is_denied() {
            prop_assert_eq!(after, None);
        }
        prop_assert_eq!(decision.word(), after.unwrap_or(caller.word));
    }

    #[test]
    fn a_peek_answers_as_a_check_and_tells_what_there_is_before_it(caller in lived()) {
        let Situation { algorithm, word, now, cost, .. } = caller;
        let peek = Decision::peek(algorithm, word, now, cost);
        let (check, _) = Decision::of(algorithm, word, now, cost);
        prop_assert_eq!(peek.verdict(), check.verdict());
        prop_assert_eq!(peek.wait(), check.wait());
        prop_assert_eq!(peek.word(), word);
        prop_assert_eq!(peek.remaining(), algorithm.remaining(word, now));
        prop_assert_eq!(peek.idle_after(), algorithm.reset_after(word, now));
        prop_assert_eq!(peek.reset_after(), algorithm.nominal_reset_after(word, now));
    }

    #[test]
    fn a_call_for_nothing_passes_and_changes_nothing(caller in situations()) {
        let after = caller.algorithm.spend(caller.word, caller.now, 0);
        prop_assert_eq!(after, Some(caller.word));
    }

    #[test]
    fn the_verdict_agrees_with_the_rest(caller in situations()) {
        let answer = caller.decide(caller.now, caller.cost);
        let agrees = match answer.verdict {
            Verdict::Allowed => answer.retry_after == Some(Duration::ZERO),
            Verdict::Denied { retry_after } => answer.retry_after == Some(retry_after),
            _ => answer.retry_after.is_none(),
        };
        prop_assert!(agrees, "{answer}");
        prop_assert!(answer.remaining <= answer.limit, "{answer}");
    }

    #[test]
    fn a_call_that_need_not_wait_passes_and_no_other_does(caller in situations()) {
        let passes = caller.passes(caller.now, caller.cost);
        let wait = caller.algorithm.retry_after(caller.word, caller.now, caller.cost);
        prop_assert_eq!(passes, wait == Some(Duration::ZERO));
    }

    #[test]
    fn remaining_is_the_largest_cost_that_passes(caller in situations()) {
        let remaining = caller.algorithm.remaining(caller.word, caller.now);
        prop_assert!(caller.passes(caller.now, remaining));
        prop_assert!(!caller.passes(caller.now, remaining + 1));
    }

    #[test]
    fn a_call_passes_after_retry_after_and_not_before(caller in situations()) {
        let Verdict::Denied { retry_after } = caller.decide(caller.now, caller.cost).verdict
        else { return Ok(()) };
        let Some(passes) = later(caller.now, retry_after) else { return Ok(()) };
        prop_assert!(caller.passes(passes, caller.cost));
        prop_assert!(!caller.passes(passes - NANOSECOND, caller.cost));
    }

    #[test]
    fn nothing_is_spent_after_reset_after_and_something_before(caller in situations()) {
        let Some(reset_after) = caller.algorithm.reset_after(caller.word, caller.now)
        else { return Ok(()) };
        let Some(idle) = later(caller.now, reset_after) else { return Ok(()) };
        prop_assert_eq!(caller.algorithm.spent(caller.word, idle), 0);
        if reset_after > Duration::ZERO {
            prop_assert!(caller.algorithm.spent(caller.word, idle - NANOSECOND) > 0);
        }
    }

    #[test]
    fn what_passes_goes_on_passing(caller in situations(), to in strategy::moments()) {
        let (earlier, later) = (caller.now.min(to), caller.now.max(to));
        if caller.passes(earlier, caller.cost) {
            prop_assert!(caller.passes(later, caller.cost));
        }
    }

    #[test]
    fn a_charge_that_passes_is_a_check(caller in situations()) {
        if caller.cost > 0 && caller.passes(caller.now, caller.cost) {
            let spent = caller.algorithm.spend(caller.word, caller.now, caller.cost);
            let charged = caller.algorithm.debit_up_to(caller.word, caller.now, caller.cost, u64::MAX);
            prop_assert_eq!(spent, Some(charged));
        }
    }

    #[test]
    fn a_charge_of_the_limit_leaves_nothing(caller in situations()) {
        let limit = caller.algorithm.limit();
        let word = caller.algorithm.debit_up_to(caller.word, caller.now, caller.cost.max(limit), u64::MAX);
        prop_assert_eq!(caller.algorithm.remaining(word, caller.now), 0);
    }

    #[test]
    fn a_refund_never_gives_more_than_the_amount(caller in situations()) {
        let before = caller.algorithm.remaining(caller.word, caller.now);
        let word = caller.algorithm.refund(caller.word, caller.now, caller.cost);
        let after = caller.algorithm.remaining(word, caller.now);
        prop_assert!(after >= before);
        // Less than one was left over before, and less than one may be after.
        prop_assert!(after <= before.saturating_add(caller.cost).saturating_add(1));
        prop_assert!(after <= caller.algorithm.limit());
    }

    #[test]
    fn nothing_spent_means_that_all_remains(caller in situations()) {
        let idle = caller.algorithm.spent(caller.word, caller.now) == 0;
        let all = caller.algorithm.limit() == caller.algorithm.remaining(caller.word, caller.now);
        prop_assert_eq!(idle, all);
        let reset = caller.algorithm.reset_after(caller.word, caller.now);
        prop_assert_eq!(idle, reset == Some(Duration::ZERO));
    }

    #[test]
    fn whoever_has_spent_more_has_less_left(caller in situations(), other in situations()) {
        let mut words = [caller.word, other.word];
        words.sort_by_key(|word| caller.algorithm.spent(*word, caller.now));
        let [more, less] = words.map(|word| caller.algorithm.remaining(word, caller.now));
        prop_assert!(more >= less);
    }

    #[test]
    fn an_idle_caller_is_as_one_never_seen(
        caller in lived(),
        pause in strategy::pauses(),
        size in strategy::sizes(),
    ) {
        let algorithm = caller.algorithm;
        let is_idle = algorithm.spent(caller.word, caller.now) == 0;
        if !is_idle || caller.limit.start == Start::Empty {
            return Ok(());
        }
        let mut known = caller.word;
        let mut fresh = algorithm.fresh(Timestamp::ZERO);
        let (later, cost) = (caller.now + pause.under(&caller.limit), size.under(&caller.limit));
        // What is spent now must look the same later, too.
        for (now, cost) in [(caller.now, caller.cost), (later, cost), (later, 1)] {
            let (of_known, after_known) = Decision::of(algorithm, known, now, cost);
            let (of_fresh, after_fresh) = Decision::of(algorithm, fresh, now, cost);
            prop_assert_eq!(Observed::from(of_known), Observed::from(of_fresh));
            known = after_known.unwrap_or(known);
            fresh = after_fresh.unwrap_or(fresh);
        }
    }
}
