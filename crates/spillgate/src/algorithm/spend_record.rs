use super::{Algorithm, AnyAlgorithm, Layout, Word};
use crate::Timestamp;

/// What an allowed call has spent, and what it takes to settle the call later.
///
/// A refund excludes what has been refilled since. Otherwise a caller could keep calls open
/// while its allowance refills, and settle all of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendRecord {
    /// The algorithm that decided.
    pub algorithm: AnyAlgorithm,
    /// The caller's word after the call.
    pub word: Word,
    /// The time of the decision.
    pub at: Timestamp,
    /// The cost of the call.
    pub cost: u64,
}

impl SpendRecord {
    /// The word after a refund of `unused`, except what has been refilled since. `has_tiers`
    /// says that, if the quota has changed since, buckets of this limit have kept the time they
    /// owe and not the tokens.
    #[must_use]
    pub fn refund(
        &self,
        algorithm: &AnyAlgorithm,
        word: Word,
        now: Timestamp,
        unused: u64,
        has_tiers: bool,
    ) -> Word {
        if self.algorithm == *algorithm {
            return algorithm.refund_call(word, now, unused, self.word);
        }
        // The quota has changed at an unknown time since: refund the smaller of what would not
        // be refilled yet had it changed just now, and had it changed right after the call.
        let late = self.algorithm.whole_owed(self.word, now);
        let moved = algorithm.carry_over(self.word, self.at, &self.algorithm);
        let kept = if has_tiers { self.in_time(algorithm, unused) } else { unused };
        algorithm.refund_call(word, now, unused.min(late).min(kept), moved)
    }

    /// How many tokens of another bucket refill in the time of `tokens` of this one.
    fn in_time(&self, algorithm: &AnyAlgorithm, tokens: u64) -> u64 {
        match (self.algorithm.layout(), algorithm.layout()) {
            (Layout::Bucket { interval: old, .. }, Layout::Bucket { interval: new, .. }) => {
                let tokens = u128::from(tokens) * u128::from(old) / u128::from(new);
                u64::try_from(tokens).unwrap_or(u64::MAX)
            }
            _ => tokens,
        }
    }
}
