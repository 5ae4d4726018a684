use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{AlgorithmKind, Error, Quota, Start, Timestamp};

/// By what a caller is counted: written beside its word, so that whoever reads the word
/// knows what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How the quota is spent.
    pub kind: AlgorithmKind,
    /// How much. If the limit has tiers, a quota by which the words of all can be read, and by
    /// which nobody is idle before it is in every tier.
    pub quota: Quota,
    /// True if the caller was given this quota at run time. It then counts whatever the
    /// policy says, and its state does not expire.
    pub is_override: bool,
    /// True if the limit has tiers. Which of them a caller has spent in, its state does not
    /// tell: a word of one is a word of all.
    pub is_tiered: bool,
}

impl Terms {
    /// The terms of a limit that has no tiers.
    #[must_use]
    pub const fn new(kind: AlgorithmKind, quota: Quota) -> Self {
        Self { kind, quota, is_override: false, is_tiered: false }
    }

    /// The terms that all tiers of a limit share, of the limit's own quota and those of its
    /// tiers.
    #[must_use]
    pub fn of_tiers(kind: AlgorithmKind, quotas: &[Quota]) -> Option<Self> {
        let quota = kind.widest(quotas)?;
        Some(Self { is_tiered: true, ..Self::new(kind, quota) })
    }

    /// The algorithm that reads a word under these terms.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota.
    pub fn algorithm(&self) -> Result<AnyAlgorithm, Error> {
        // What is stored has begun already: the start is a matter of absent words.
        self.kind.with_quota(&self.quota, Start::Full, Timestamp::ZERO)
    }

    /// The algorithm that counts by a quota in words of these terms: that of a tier.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota, or not in such words.
    pub fn algorithm_of(&self, quota: &Quota) -> Result<AnyAlgorithm, Error> {
        self.starting(quota, Start::Full, Timestamp::ZERO)
    }

    /// The same for callers who start with what there has been since `born`.
    pub(crate) fn starting(
        &self,
        quota: &Quota,
        start: Start,
        born: Timestamp,
    ) -> Result<AnyAlgorithm, Error> {
        let own = self.kind.with_quota(quota, start, born)?;
        if *quota == self.quota {
            return Ok(own);
        }
        let both = self.kind.with_quotas(&[*quota, self.quota], start, born)?;
        Ok(both.first().copied().unwrap_or(own))
    }
}

/// All that Redis keeps of a caller under one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// By what it is counted.
    pub terms: Terms,
    /// What it has spent.
    pub word: Word,
    /// What it had spent before it got a quota of its own, if it has one.
    pub base: Option<Base>,
}

impl State {
    /// The state of a caller who has no quota of its own, or had spent nothing before it got
    /// one.
    #[must_use]
    pub const fn new(terms: Terms, word: Word) -> Self {
        Self { terms, word, base: None }
    }
}

/// What a caller had spent under a limit before it got a quota of its own. It counts again when
/// that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// By what it was counted.
    pub terms: Terms,
    /// What it had spent.
    pub word: Word,
    /// When nothing of that is spent any more, in milliseconds since the epoch: 0 if never.
    pub idle_at: u64,
}

impl Base {
    /// What a caller has spent by now.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota.
    pub fn new(terms: Terms, word: Word, now: Timestamp) -> Result<Self, Error> {
        let idle_after = terms.algorithm()?.reset_after(word, now);
        let idle_at = idle_after.map_or(0, |after| {
            let nanos = after.as_nanos().saturating_add(u128::from(now.as_nanos()));
            u64::try_from(nanos.div_ceil(NANOS_A_MILLI)).unwrap_or(u64::MAX).max(1)
        });
        Ok(Self { terms, word, idle_at })
    }
}

const NANOS_A_MILLI: u128 = 1_000_000;
