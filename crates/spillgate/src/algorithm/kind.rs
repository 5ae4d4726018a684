use std::fmt;
use std::str::FromStr;

use super::{
    AnyAlgorithm, FixedWindow, IntervalBucket, LeakyBucket, SlidingWindow, Start, TokenBucket,
};
use crate::{Error, Quota, Timestamp};

/// An algorithm, without a quota.
///
/// ```
/// use spillgate::AlgorithmKind;
///
/// assert_eq!("sliding-window".parse(), Ok(AlgorithmKind::SlidingWindow));
/// assert_eq!(AlgorithmKind::default().to_string(), "token-bucket");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlgorithmKind {
    /// `token-bucket`: burst and steady refill. See [`TokenBucket`].
    #[default]
    TokenBucket,
    /// `leaky-bucket`: a queue that is only counted. See [`LeakyBucket::meter`].
    LeakyBucket,
    /// `leaky-shaper`: a queue in which calls wait. See [`LeakyBucket::shaper`].
    LeakyShaper,
    /// `interval-bucket`: one whole refill per period. See [`IntervalBucket`].
    IntervalBucket,
    /// `fixed-window`: aligned to the clock. See [`FixedWindow::aligned`].
    FixedWindow,
    /// `first-hit-window`: from a caller's first call. See
    /// [`FixedWindow::from_first_hit`].
    FirstHitWindow,
    /// `sliding-window`: two weighted windows. See [`SlidingWindow`].
    SlidingWindow,
}

impl AlgorithmKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::TokenBucket,
        Self::LeakyBucket,
        Self::LeakyShaper,
        Self::IntervalBucket,
        Self::FixedWindow,
        Self::FirstHitWindow,
        Self::SlidingWindow,
    ];

    /// The name in configuration files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token-bucket",
            Self::LeakyBucket => "leaky-bucket",
            Self::LeakyShaper => "leaky-shaper",
            Self::IntervalBucket => "interval-bucket",
            Self::FixedWindow => "fixed-window",
            Self::FirstHitWindow => "first-hit-window",
            Self::SlidingWindow => "sliding-window",
        }
    }

    /// The algorithm with a quota. `born` is when a bucket that
    /// [starts empty](Start::Empty) begins to fill.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota, or cannot start empty.
    pub fn with_quota(
        self,
        quota: &Quota,
        start: Start,
        born: Timestamp,
    ) -> Result<AnyAlgorithm, Error> {
        use AnyAlgorithm as Any;
        Ok(match (self, start) {
            (Self::TokenBucket, Start::Full) => Any::TokenBucket(TokenBucket::new(quota)?),
            (Self::TokenBucket, Start::Empty) => {
                Any::TokenBucket(TokenBucket::starting_empty(quota, born)?)
            }
            (Self::IntervalBucket, Start::Full) => Any::IntervalBucket(IntervalBucket::new(quota)?),
            (Self::IntervalBucket, Start::Empty) => {
                Any::IntervalBucket(IntervalBucket::starting_empty(quota, born)?)
            }
            (kind, Start::Empty) => {
                return Err(Error::algorithm(format!(
                    "a {kind} cannot start empty; use a token-bucket or an interval-bucket"
                )));
            }
            (Self::LeakyBucket, _) => Any::LeakyBucket(LeakyBucket::meter(quota)?),
            (Self::LeakyShaper, _) => Any::LeakyBucket(LeakyBucket::shaper(quota)?),
            (Self::FixedWindow, _) => Any::FixedWindow(FixedWindow::aligned(quota)?),
            (Self::FirstHitWindow, _) => Any::FixedWindow(FixedWindow::from_first_hit(quota)?),
            (Self::SlidingWindow, _) => Any::SlidingWindow(SlidingWindow::new(quota)?),
        })
    }
}

impl fmt::Display for AlgorithmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AlgorithmKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            Error::algorithm(format!("unknown algorithm {text:?}; use one of {known}"))
        })
    }
}
