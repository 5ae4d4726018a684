//! Limits of debt.

use std::time::Duration;

use super::{Algorithm, AnyAlgorithm, Word};
use crate::{Error, Timestamp};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl AnyAlgorithm {
    /// The most that a caller may owe in total: the limit plus `max_debt`, which defaults to the
    /// refill of one day or ten times the limit, whichever is more; bounded by what the word can
    /// represent.
    #[must_use]
    pub fn most_owed(&self, max_debt: Option<u64>) -> u64 {
        let day_or_ten_bursts = || self.refill_in(DAY).max(self.limit().saturating_mul(10));
        let max_debt = max_debt.unwrap_or_else(day_or_ten_bursts);
        self.limit().saturating_add(max_debt).min(self.deepest())
    }

    /// Spends `amount` unconditionally, into debt up to [`most_owed`](Self::most_owed). Returns
    /// the new word, and how much was not spent.
    #[must_use]
    pub fn debit(
        &self,
        word: Word,
        now: Timestamp,
        amount: u64,
        max_debt: Option<u64>,
    ) -> (Word, u64) {
        if amount == 0 {
            return (word, 0);
        }
        let next = self.debit_up_to(word, now, amount, self.most_owed(max_debt));
        (next, self.uncharged(word, next, now, amount))
    }

    /// How much of `amount` was not spent between two words.
    #[must_use]
    pub fn uncharged(&self, before: Word, after: Word, now: Timestamp, amount: u64) -> u64 {
        let owed = self.owed(before, now).saturating_add(amount);
        owed.saturating_sub(self.owed(after, now)).min(amount)
    }

    /// Checks that the word can represent a debt.
    ///
    /// # Errors
    ///
    /// If the word cannot represent it.
    pub fn expect_debt(&self, max_debt: u64) -> Result<(), Error> {
        let deepest = self.deepest() - self.limit();
        if max_debt <= deepest {
            return Ok(());
        }
        let instead = match self {
            Self::TokenBucket(_) | Self::LeakyBucket(_) => "",
            _ => ", or a token-bucket",
        };
        Err(Error::algorithm(format!(
            "a debt of {max_debt} beyond a limit of {} is more than this algorithm can count; \
             use at most {deepest}{instead}",
            self.limit(),
        )))
    }
}
