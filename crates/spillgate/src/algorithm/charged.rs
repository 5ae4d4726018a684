use super::{Algorithm, AnyAlgorithm, Layout, Word};
use crate::Timestamp;

/// A call that was paid for: what it takes to settle it later.
///
/// What a call has not used is given back, but only as far as it has not been refilled since.
/// Otherwise a caller could keep calls open while its allowance refills, and settle all of
/// them at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// What it was counted by.
    pub algorithm: AnyAlgorithm,
    /// The word that it left behind.
    pub word: Word,
    /// When.
    pub at: Timestamp,
    /// What it cost.
    pub cost: u64,
}

impl Charged {
    /// The word that is left when `unused` of the cost is given back, as far as it has not been
    /// refilled. If the quota has changed since, of a limit that `has_tiers`, words of buckets
    /// have kept their time and not their tokens.
    #[must_use]
    pub fn give_back(
        &self,
        algorithm: &AnyAlgorithm,
        word: Word,
        now: Timestamp,
        unused: u64,
        has_tiers: bool,
    ) -> Word {
        if self.algorithm == *algorithm {
            return algorithm.give_back(word, now, unused, self.word);
        }
        // The quota has changed since, nobody knows when: so both count, what would not be
        // refilled yet had it changed just now, and had it changed at once.
        let late = self.algorithm.whole_owed(self.word, now);
        let moved = algorithm.carry_over(self.word, self.at, &self.algorithm);
        let kept = if has_tiers { self.in_time(algorithm, unused) } else { unused };
        algorithm.give_back(word, now, unused.min(late).min(kept), moved)
    }

    /// How many tokens of another bucket take as long as so many of this one.
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
