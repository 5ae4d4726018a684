//! What a state becomes when its caller is counted by something else.

use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};

use super::core::{Caller, uncountable};
use crate::backend::BackendError;
use crate::effective_quota::{EffectiveQuota, QuotaOwner};
use crate::{Base, State, Terms};

impl Caller {
    /// What a stored state becomes when this caller is counted by `wanted`.
    ///
    /// What it has spent stays spent, in tokens. If `wanted` is a quota of its own, what it had
    /// spent under the limit becomes the base; and when such a quota goes, the stricter of both
    /// counts.
    pub(super) fn translated(
        &self,
        stored: &State,
        wanted: &EffectiveQuota,
        now: Timestamp,
    ) -> Result<State, BackendError> {
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
    ) -> Result<Word, BackendError> {
        let shared = &self.shared().algorithm;
        let word = match &stored.base {
            None => self.in_limit(&stored.terms, stored.word, now)?,
            Some(base) => {
                let before = self.in_limit(&base.terms, base.word, now)?;
                let own = shared.carry_over(stored.word, now, &algorithm(&stored.terms)?);
                shared.larger(before, own, now)
            }
        };
        // The same, unless the limit's quota stands in for one of the caller's own.
        Ok(wanted.algorithm.keep(word, now, shared))
    }

    /// The word that one under other terms becomes under the limit's.
    fn in_limit(&self, terms: &Terms, word: Word, now: Timestamp) -> Result<Word, BackendError> {
        let (shared, old) = (self.shared(), algorithm(terms)?);
        Ok(if *terms == shared.terms {
            word
        } else if terms.is_tiered || self.limit.is_by_call || terms.quota == shared.quota {
            // Nobody knows how many tokens it owes, only for how long, or what was counted. If
            // it was by the quota of the caller's tier, that is the same.
            shared.algorithm.keep(word, now, &old)
        } else if terms.is_override {
            shared.algorithm.carry_over(word, now, &old)
        } else {
            self.limit.base.algorithm.carry_over(word, now, &old)
        })
    }

    /// The word of a state under the limit, and what tells how many tokens it is.
    fn tokens_of(
        &self,
        stored: &State,
        now: Timestamp,
    ) -> Result<(Word, AnyAlgorithm), BackendError> {
        if !stored.terms.is_tiered {
            return Ok((stored.word, algorithm(&stored.terms)?));
        }
        // Those of the caller's tier.
        let word = self.in_limit(&stored.terms, stored.word, now)?;
        Ok((word, self.shared().algorithm))
    }

    /// True if a state is counted by a quota of the caller's own, not by one of the limit that
    /// stands in for it.
    fn is_callers_own(&self, stored: &State) -> bool {
        let stands_in =
            self.by_policy.owner == QuotaOwner::Caller && stored.terms.quota == self.shared().quota;
        stored.base.is_some() || (stored.terms.is_override && !stands_in)
    }

    /// What the limit counts it by: its own quota, or that of the caller's tier.
    fn shared(&self) -> &EffectiveQuota {
        self.limit.tier_quota(self.tier)
    }
}

/// What reads the words of stored terms.
fn algorithm(terms: &Terms) -> Result<AnyAlgorithm, BackendError> {
    terms.algorithm().map_err(|why| uncountable(&why))
}
