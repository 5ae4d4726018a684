use tollgate::algorithm::{AnyAlgorithm, Word};
use tollgate::{AlgorithmKind, Error, Quota, Start, Timestamp};

/// By what a caller is counted: written beside its word, so that whoever reads the word
/// knows what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How the quota is spent.
    pub kind: AlgorithmKind,
    /// How much.
    pub quota: Quota,
    /// True if the caller was given this quota at run time. It then counts whatever the
    /// policy says, and its state does not expire.
    pub is_override: bool,
}

impl Terms {
    /// The algorithm that reads a word under these terms.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota.
    pub fn algorithm(&self) -> Result<AnyAlgorithm, Error> {
        // What is stored has begun already: the start is a matter of absent words.
        self.kind.with_quota(&self.quota, Start::Full, Timestamp::ZERO)
    }
}

/// All that an engine keeps of a caller under one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// By what it is counted.
    pub terms: Terms,
    /// What it has spent.
    pub word: Word,
}
