use spillgate::AlgorithmKind;

/// The algorithm of limits in envoyproxy/ratelimit files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// As envoyproxy/ratelimit does: windows begin at full minutes, hours and so on.
    #[default]
    FixedWindow,
    /// A burst of the whole quota, refilled continuously.
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
