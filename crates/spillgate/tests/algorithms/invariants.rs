//! What holds for every algorithm, whatever the word.

use std::time::Duration;

use proptest::prelude::*;
use spillgate::algorithm::Algorithm;
use spillgate::{Decision, Start, Timestamp, Verdict};
use spillgate_testing::{Observed, strategy};

use crate::situation::{Situation, lived, situations};

const NANOSECOND: Duration = Duration::from_nanos(1);

fn later(now: Timestamp, after: Duration) -> Option<Timestamp> {
    let moment = now + after;
    (moment.since(now) == after && moment < Timestamp::MAX).then_some(moment)
}

proptest! {
    #![proptest_config(strategy::cases(10_000))]

    #[test]
    fn a_denial_changes_nothing(client in situations()) {
        let (decision, after) =
            Decision::of(client.algorithm, client.word, client.now, client.cost);
        if decision.is_denied() {
            prop_assert_eq!(after, None);
        }
        prop_assert_eq!(decision.word(), after.unwrap_or(client.word));
    }

    #[test]
    fn a_peek_answers_as_a_check_and_tells_what_there_is_before_it(client in lived()) {
        let Situation { algorithm, word, now, cost, .. } = client;
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
    fn a_call_for_nothing_passes_and_changes_nothing(client in situations()) {
        let after = client.algorithm.spend(client.word, client.now, 0);
        prop_assert_eq!(after, Some(client.word));
    }

    #[test]
    fn the_verdict_agrees_with_the_rest(client in situations()) {
        let answer = client.decide(client.now, client.cost);
        let agrees = match answer.verdict {
            Verdict::Allowed => answer.retry_after == Some(Duration::ZERO),
            Verdict::Denied { retry_after } => answer.retry_after == Some(retry_after),
            Verdict::Never => answer.retry_after.is_none(),
        };
        prop_assert!(agrees, "{answer}");
        prop_assert!(answer.remaining <= answer.limit, "{answer}");
    }

    #[test]
    fn a_call_that_need_not_wait_passes_and_no_other_does(client in situations()) {
        let passes = client.passes(client.now, client.cost);
        let wait = client.algorithm.retry_after(client.word, client.now, client.cost);
        prop_assert_eq!(passes, wait == Some(Duration::ZERO));
    }

    #[test]
    fn remaining_is_the_largest_cost_that_passes(client in situations()) {
        let remaining = client.algorithm.remaining(client.word, client.now);
        prop_assert!(client.passes(client.now, remaining));
        prop_assert!(!client.passes(client.now, remaining + 1));
    }

    #[test]
    fn a_call_passes_after_retry_after_and_not_before(client in situations()) {
        let Verdict::Denied { retry_after } = client.decide(client.now, client.cost).verdict
        else { return Ok(()) };
        let Some(passes) = later(client.now, retry_after) else { return Ok(()) };
        prop_assert!(client.passes(passes, client.cost));
        prop_assert!(!client.passes(passes - NANOSECOND, client.cost));
    }

    #[test]
    fn nothing_is_spent_after_reset_after_and_something_before(client in situations()) {
        let Some(reset_after) = client.algorithm.reset_after(client.word, client.now)
        else { return Ok(()) };
        let Some(idle) = later(client.now, reset_after) else { return Ok(()) };
        prop_assert_eq!(client.algorithm.spent(client.word, idle), 0);
        if reset_after > Duration::ZERO {
            prop_assert!(client.algorithm.spent(client.word, idle - NANOSECOND) > 0);
        }
    }

    #[test]
    fn what_passes_goes_on_passing(client in situations(), to in strategy::moments()) {
        let (earlier, later) = (client.now.min(to), client.now.max(to));
        if client.passes(earlier, client.cost) {
            prop_assert!(client.passes(later, client.cost));
        }
    }

    #[test]
    fn a_charge_that_passes_is_a_check(client in situations()) {
        if client.cost > 0 && client.passes(client.now, client.cost) {
            let spent = client.algorithm.spend(client.word, client.now, client.cost);
            let charged = client.algorithm.debit_up_to(client.word, client.now, client.cost, u64::MAX);
            prop_assert_eq!(spent, Some(charged));
        }
    }

    #[test]
    fn a_charge_of_the_limit_leaves_nothing(client in situations()) {
        let limit = client.algorithm.limit();
        let word = client.algorithm.debit_up_to(client.word, client.now, client.cost.max(limit), u64::MAX);
        prop_assert_eq!(client.algorithm.remaining(word, client.now), 0);
    }

    #[test]
    fn a_refund_never_gives_more_than_the_amount(client in situations()) {
        let before = client.algorithm.remaining(client.word, client.now);
        let word = client.algorithm.refund(client.word, client.now, client.cost);
        let after = client.algorithm.remaining(word, client.now);
        prop_assert!(after >= before);
        // Less than one was left over before, and less than one may be after.
        prop_assert!(after <= before.saturating_add(client.cost).saturating_add(1));
        prop_assert!(after <= client.algorithm.limit());
    }

    #[test]
    fn nothing_spent_means_that_all_remains(client in situations()) {
        let idle = client.algorithm.spent(client.word, client.now) == 0;
        let all = client.algorithm.limit() == client.algorithm.remaining(client.word, client.now);
        prop_assert_eq!(idle, all);
        let reset = client.algorithm.reset_after(client.word, client.now);
        prop_assert_eq!(idle, reset == Some(Duration::ZERO));
    }

    #[test]
    fn whoever_has_spent_more_has_less_left(client in situations(), other in situations()) {
        let mut words = [client.word, other.word];
        words.sort_by_key(|word| client.algorithm.spent(*word, client.now));
        let [more, less] = words.map(|word| client.algorithm.remaining(word, client.now));
        prop_assert!(more >= less);
    }

    #[test]
    fn an_idle_client_is_as_one_never_seen(
        client in lived(),
        pause in strategy::pauses(),
        size in strategy::sizes(),
    ) {
        let algorithm = client.algorithm;
        let is_idle = algorithm.spent(client.word, client.now) == 0;
        if !is_idle || client.limit.start == Start::Empty {
            return Ok(());
        }
        let mut known = client.word;
        let mut fresh = algorithm.fresh(Timestamp::ZERO);
        let (later, cost) = (client.now + pause.under(&client.limit), size.under(&client.limit));
        // What is spent now must look the same later, too.
        for (now, cost) in [(client.now, client.cost), (later, cost), (later, 1)] {
            let (of_known, after_known) = Decision::of(algorithm, known, now, cost);
            let (of_fresh, after_fresh) = Decision::of(algorithm, fresh, now, cost);
            prop_assert_eq!(Observed::from(of_known), Observed::from(of_fresh));
            known = after_known.unwrap_or(known);
            fresh = after_fresh.unwrap_or(fresh);
        }
    }
}
