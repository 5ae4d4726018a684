//! Converts a state when the quota of its caller changes.

use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};

use super::core::{Caller, uncountable};
use crate::backend::Result;
use crate::effective_quota::{EffectiveQuota, QuotaOwner};
use crate::{Base, State, Terms};

impl Caller {
    /// Converts a stored state to the quota `wanted`.
    ///
    /// Spent tokens stay spent. If `wanted` is an override, the spending under the limit becomes
    /// the base; when the override is removed, the stricter of both applies.
    pub(super) fn translated(
        &self,
        stored: &State,
        wanted: &EffectiveQuota,
        now: Timestamp,
    ) -> Result<State> {
        let (word, base) = match wanted.owner {
            QuotaOwner::Limit => (self.back_to_the_limit(stored, wanted, now)?, None),
            QuotaOwner::Caller if self.is_callers_own(stored) => {
                let old = algorithm(&stored.terms)?;
                (wanted.algorithm.carry_over(stored.word, now, &old), stored.base)
            }
            QuotaOwner::Caller => {
                let (word, old) = self.tokens_of(stored, now)?;
                let base = Base::new(stored.terms, stored.word, now);
                let base = base.map_err(|why| uncountable(&why))?;
                (wanted.algorithm.carry_over(word, now, &old), Some(base))
            }
        };
        Ok(State { terms: wanted.terms, word, base })
    }

    /// The word of a state under a quota of the limit.
    fn back_to_the_limit(
        &self,
        stored: &State,
        wanted: &EffectiveQuota,
        now: Timestamp,
    ) -> Result<Word> {
        let shared = &self.shared().algorithm;
        let word = match &stored.base {
            None => self.in_limit(&stored.terms, stored.word, now)?,
            Some(base) => {
                let before = self.in_limit(&base.terms, base.word, now)?;
                let own = shared.carry_over(stored.word, now, &algorithm(&stored.terms)?);
                shared.larger(before, own, now)
            }
        };
        // The same, unless the limit's quota replaces an override of the policy.
        Ok(wanted.algorithm.keep(word, now, shared))
    }

    /// Converts a word to the terms of the limit.
    fn in_limit(&self, terms: &Terms, word: Word, now: Timestamp) -> Result<Word> {
        let (shared, old) = (self.shared(), algorithm(terms)?);
        Ok(if *terms == shared.terms {
            word
        } else if terms.is_tiered || self.limit.is_by_call || terms.quota == shared.quota {
            // The number of tokens is unknown, only the time, or the count. Under the quota of the
            // caller's tier it is the same.
            shared.algorithm.keep(word, now, &old)
        } else if terms.is_override {
            shared.algorithm.carry_over(word, now, &old)
        } else {
            self.limit.base.algorithm.carry_over(word, now, &old)
        })
    }

    /// The word of a state under the limit, and the algorithm that counts its tokens.
    fn tokens_of(&self, stored: &State, now: Timestamp) -> Result<(Word, AnyAlgorithm)> {
        if !stored.terms.is_tiered {
            return Ok((stored.word, algorithm(&stored.terms)?));
        }
        // Tokens of the caller's tier.
        let word = self.in_limit(&stored.terms, stored.word, now)?;
        Ok((word, self.shared().algorithm))
    }

    /// True if a state has an override, and not the limit's quota in place of one.
    fn is_callers_own(&self, stored: &State) -> bool {
        let stands_in =
            self.by_policy.owner == QuotaOwner::Caller && stored.terms.quota == self.shared().quota;
        stored.base.is_some() || (stored.terms.is_override && !stands_in)
    }

    /// The limit's own quota, or that of the caller's tier.
    fn shared(&self) -> &EffectiveQuota {
        self.limit.tier_quota(self.tier)
    }
}

/// The algorithm of stored terms.
fn algorithm(terms: &Terms) -> Result<AnyAlgorithm> {
    terms.algorithm().map_err(|why| uncountable(&why))
}
