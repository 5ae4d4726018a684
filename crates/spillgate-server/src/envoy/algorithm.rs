use std::str::FromStr;

use spillgate::AlgorithmKind;

/// How the quotas of files are spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// As envoyproxy/ratelimit does: so many from one full minute to the next.
    #[default]
    FixedWindow,
    /// So many at once, refilled bit by bit.
    TokenBucket,
}

impl Algorithm {
    pub(super) fn kind(self) -> AlgorithmKind {
        match self {
            Self::FixedWindow => AlgorithmKind::FixedWindow,
            Self::TokenBucket => AlgorithmKind::TokenBucket,
        }
    }
}

impl FromStr for Algorithm {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "fixed-window" => Ok(Self::FixedWindow),
            "token-bucket" => Ok(Self::TokenBucket),
            _ => Err("write \"fixed-window\" or \"token-bucket\""),
        }
    }
}
