//! Whatever the word, the time and the cost: no panic, and no word that a table
//! would take for something else. The profile of tests checks for overflow.

use proptest::prelude::*;
use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate_testing::strategy;

use crate::algorithms::situation::{garbage, limits};

/// Everything that an algorithm can be asked.
fn ask_everything(algorithm: &AnyAlgorithm, word: Word, now: Timestamp, cost: u64) -> Vec<Word> {
    let _ = algorithm.spent(word, now);
    let _ = algorithm.remaining(word, now);
    let _ = algorithm.retry_after(word, now, cost);
    let _ = algorithm.reset_after(word, now);
    let _ = algorithm.wait(word, now, cost);
    let _ = algorithm.owed(word, now);
    let mut words = vec![
        algorithm.debit_up_to(word, now, cost, u64::MAX),
        algorithm.debit_up_to(word, now, u64::MAX, cost),
        algorithm.refund(word, now, cost),
        algorithm.refund_call(word, now, cost, Word::from_bits(cost)),
        algorithm.refund_call(word, now, u64::MAX, word),
        algorithm.fresh(now),
    ];
    words.extend(algorithm.spend(word, now, cost));
    words
}

proptest! {
    #![proptest_config(strategy::cases(20_000))]

    #[test]
    fn any_word_can_be_asked_anything(caller in garbage()) {
        for word in ask_everything(&caller.algorithm, caller.word, caller.now, caller.cost) {
            prop_assert_ne!(word.to_bits(), u64::MAX);
            ask_everything(&caller.algorithm, word, Timestamp::MAX, u64::MAX);
            ask_everything(&caller.algorithm, word, Timestamp::ZERO, caller.cost);
        }
    }

    #[test]
    fn a_charge_never_lowers_a_debt(caller in garbage()) {
        let charged = caller.algorithm.debit_up_to(caller.word, caller.now, caller.cost, u64::MAX);
        let spent = |word| caller.algorithm.spent(word, caller.now);
        prop_assert!(spent(charged) >= spent(caller.word));
    }

    #[test]
    fn any_word_can_be_carried_over(caller in garbage(), to in limits()) {
        let new = to.algorithm().unwrap();
        for word in [
            new.carry_over(caller.word, caller.now, &caller.algorithm),
            new.keep(caller.word, caller.now, &caller.algorithm),
        ] {
            prop_assert_ne!(word.to_bits(), u64::MAX);
            ask_everything(&new, word, caller.now, caller.cost);
        }
    }
}
