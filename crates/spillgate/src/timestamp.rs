use std::fmt;
use std::time::Duration;

/// A moment in nanoseconds since the Unix epoch.
///
/// Every decision is a function of a `Timestamp`, so a limiter can be driven by
/// a [`Clock`](crate::Clock), by a recorded log or by a test. The range is 2⁶²
/// nanoseconds, which ends in the year 2116; later moments saturate there, so
/// time stops instead of wrapping, and nothing refills by mistake.
///
/// ```
/// use std::time::Duration;
/// use spillgate::Timestamp;
///
/// let start = Timestamp::from_secs(1_700_000_000);
/// let later = start + Duration::from_millis(1500);
/// assert_eq!(later.since(start), Duration::from_millis(1500));
/// assert_eq!(start.since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const ZERO: Self = Self(0);

    /// The last moment that can be represented.
    ///
    /// Two spans of this length can be added to it without leaving `u64`, which
    /// is what lets every algorithm add without checking.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// The moment `nanos` nanoseconds after the epoch.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos > Self::MAX.0 { Self::MAX } else { Self(nanos) }
    }

    /// The moment `nanos` nanoseconds after the epoch, which is known to be one
    /// before the year 2116.
    #[inline(always)]
    pub(crate) const fn before_max(nanos: u64) -> Self {
        debug_assert!(nanos <= Self::MAX.0);
        Self(nanos)
    }

    /// The moment `secs` seconds after the epoch.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the epoch.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`, or zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at [`Timestamp::MAX`].
    fn add(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self::from_nanos(self.0.saturating_add(nanos))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at the epoch.
    fn sub(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
