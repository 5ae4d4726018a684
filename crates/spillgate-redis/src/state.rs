use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{AlgorithmKind, Error, Quota, Start, Timestamp};

/// How to read a word: stored with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The algorithm.
    pub kind: AlgorithmKind,
    /// The quota. With tiers, one that can read the words of all, and is idle last.
    pub quota: Quota,
    /// True for an override set at run time. It replaces the policy's quota, and its state does not
    /// expire.
    pub is_override: bool,
    /// True if the limit has tiers, which share one word.
    pub is_tiered: bool,
}

impl Terms {
    /// The terms of a limit without tiers.
    #[must_use]
    pub const fn new(kind: AlgorithmKind, quota: Quota) -> Self {
        Self { kind, quota, is_override: false, is_tiered: false }
    }

    /// The terms shared by the limit's own quota and its tiers.
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
        // `start` matters only for absent words.
        self.kind.with_quota(&self.quota, Start::Full, Timestamp::ZERO)
    }

    /// The algorithm for the quota of a tier, in words of these terms.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota, or not in such words.
    pub fn algorithm_of(&self, quota: &Quota) -> Result<AnyAlgorithm, Error> {
        self.starting(quota, Start::Full, Timestamp::ZERO)
    }

    /// The same for callers that start with what has refilled since `born`.
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

/// What Redis stores for a caller under one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// How to read the word.
    pub terms: Terms,
    /// What was spent.
    pub word: Word,
    /// What was spent before an override, if there is one.
    pub base: Option<Base>,
}

impl State {
    /// A state without a base.
    #[must_use]
    pub const fn new(terms: Terms, word: Word) -> Self {
        Self { terms, word, base: None }
    }
}

/// What a caller had spent under a limit before it got an override. It counts again when the
/// override is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// How to read the word.
    pub terms: Terms,
    /// What was spent.
    pub word: Word,
    /// When nothing of it is spent any more, in milliseconds since the epoch: 0 if never.
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
