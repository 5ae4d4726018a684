use std::fmt;

use spillgate::algorithm::AnyAlgorithm;
use spillgate::{AlgorithmKind, Error, Quota, Start, Timestamp};

/// All that it takes to build one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How it counts.
    pub kind: AlgorithmKind,
    /// How much it lets pass.
    pub quota: Quota,
    /// What a caller never seen may spend.
    pub start: Start,
    /// When a limit that starts empty begins to fill.
    pub born: Timestamp,
}

impl Limit {
    /// The algorithm that is to be tested.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota, or has no empty start.
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
