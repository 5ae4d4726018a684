use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{Error, Quota, Start, Timestamp};

use crate::backend::{Entry, Op};
use crate::{Name, State, Terms};

/// The quota that applies to a caller, and how to count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EffectiveQuota {
    /// Stored with the word: how to read it.
    pub(crate) terms: Terms,
    /// The quota of the terms, of a tier, or of the call.
    pub(crate) quota: Quota,
    /// Counts that quota in words of the terms.
    pub(crate) algorithm: AnyAlgorithm,
    pub(crate) owner: QuotaOwner,
}

/// Whose quota it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaOwner {
    /// The limit's own, or a tier's.
    Limit,
    /// An override for the caller, by the policy or at run time.
    Caller,
}

impl EffectiveQuota {
    pub(crate) fn of(terms: Terms, owner: QuotaOwner) -> Result<Self, Error> {
        Ok(Self { terms, quota: terms.quota, algorithm: terms.algorithm()?, owner })
    }

    /// A quota of the limit, in words of the terms.
    pub(crate) fn by(terms: Terms, quota: Quota) -> Result<Self, Error> {
        let algorithm = terms.algorithm_of(&quota)?;
        Ok(Self { terms, quota, algorithm, owner: QuotaOwner::Limit })
    }

    /// The word of a caller that Redis does not know. `born` is when a limit that starts empty was
    /// first used.
    pub(crate) fn fresh(&self, born: Option<Timestamp>) -> Word {
        let starting = |born| self.terms.starting(&self.quota, Start::Empty, born).ok();
        born.and_then(starting).unwrap_or(self.algorithm).fresh(Timestamp::ZERO)
    }

    /// True if a word denies for twice as long as a full refill takes: without debt, it is from the
    /// future.
    pub(crate) fn is_impossible(&self, word: Word, now: Timestamp) -> bool {
        let (back, all) = (self.algorithm.reset_after(word, now), self.algorithm.window());
        back.zip(all).is_some_and(|(back, all)| back > 2 * all)
    }

    /// An operation on a caller with this quota.
    pub(crate) fn entry(&self, name: Name, fresh: Word, op: Op) -> Entry {
        Entry { name, terms: self.terms, algorithm: self.algorithm, fresh, op }
    }

    /// A state with this word and no override.
    pub(crate) fn state(&self, word: Word) -> State {
        State::new(self.terms, word)
    }

    /// True if words mean the same and cost the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.terms == other.terms && self.algorithm == other.algorithm
    }
}
