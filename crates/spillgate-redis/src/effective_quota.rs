use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{Error, Quota, Start, Timestamp};

use crate::{State, Terms};

/// What a caller is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EffectiveQuota {
    /// What Redis keeps beside its word. It says how the word is packed.
    pub(crate) terms: Terms,
    /// The quota: that of the terms, or of a tier, or one that came with the call.
    pub(crate) quota: Quota,
    /// What counts by that quota, in words of the terms.
    pub(crate) algorithm: AnyAlgorithm,
    pub(crate) owner: QuotaOwner,
}

/// QuotaOwner quota it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaOwner {
    /// The limit's: its own, or a tier's.
    Limit,
    /// The caller's, by the policy or given at run time.
    Caller,
}

impl EffectiveQuota {
    /// By the quota of the terms.
    pub(crate) fn of(terms: Terms, owner: QuotaOwner) -> Result<Self, Error> {
        Ok(Self { terms, quota: terms.quota, algorithm: terms.algorithm()?, owner })
    }

    /// By a quota of the limit, in words of the terms.
    pub(crate) fn by(terms: Terms, quota: Quota) -> Result<Self, Error> {
        let algorithm = terms.algorithm_of(&quota)?;
        Ok(Self { terms, quota, algorithm, owner: QuotaOwner::Limit })
    }

    /// The word of a caller that Redis does not know. `born` is when a limit that
    /// starts empty was first asked for.
    pub(crate) fn fresh(&self, born: Option<Timestamp>) -> Word {
        let starting = |born| self.terms.starting(&self.quota, Start::Empty, born).ok();
        born.and_then(starting).unwrap_or(self.algorithm).fresh(Timestamp::ZERO)
    }

    /// True if a word denies for longer than what can be spent takes to come back, and so long
    /// again: of a limit under which nobody can be in debt, it is from a later time.
    pub(crate) fn is_impossible(&self, word: Word, now: Timestamp) -> bool {
        let (back, all) = (self.algorithm.reset_after(word, now), self.algorithm.window());
        back.zip(all).is_some_and(|(back, all)| back > 2 * all)
    }

    /// What Redis keeps of a caller that has this word, and no quota of its own.
    pub(crate) fn state(&self, word: Word) -> State {
        State::new(self.terms, word)
    }

    /// True if words mean the same, and cost the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.terms == other.terms && self.algorithm == other.algorithm
    }
}
