use std::fmt;

use spillgate::algorithm::AnyAlgorithm;
use spillgate::{AlgorithmKind, Error, Quota, Start, Timestamp};

/// A limit to be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The algorithm.
    pub kind: AlgorithmKind,
    /// The quota.
    pub quota: Quota,
    /// What a new caller may spend.
    pub start: Start,
    /// When a limit that starts empty begins to fill.
    pub born: Timestamp,
}

impl Limit {
    /// The algorithm under test.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota, or cannot start empty.
    pub fn algorithm(&self) -> Result<AnyAlgorithm, Error> {
        self.kind.with_quota(&self.quota, self.start, self.born)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of \"{}\"", self.kind, self.quota)?;
        match self.start {
            Start::Empty => write!(f, ", empty at {}", self.born),
            _ => Ok(()),
        }
    }
}
