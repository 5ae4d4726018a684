use std::time::Duration;

/// What was seen of a service in some time.
///
/// ```
/// use spillgate::adaptive::{LimitKind, Window};
///
/// let mut window = Window::default();
/// assert_eq!(window.kind, LimitKind::Concurrency);
/// window.kind = LimitKind::Rate;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Window {
    /// What is limited.
    pub kind: LimitKind,
    /// How long it was.
    pub length: Duration,
    /// Calls that ended, well or not. Cancelled and refused ones do not count.
    pub completed: u64,
    /// Calls that failed, of those.
    pub failed: u64,
    /// Calls that the limit refused.
    pub refused: u64,
    /// The mean latency of calls that ended well; `None` if there were none.
    pub mean_latency: Option<Duration>,
    /// The latency that nine of ten such calls did not exceed, within 2 %.
    pub p90_latency: Option<Duration>,
    /// The most calls that were in flight at once. None for a rate, where nobody counts them.
    pub most_in_flight: u32,
    /// What the signal says; `None` if it is missing or not a number.
    pub signal: Option<f64>,
}

/// What an adaptive limit limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// Calls in flight.
    #[default]
    Concurrency,
    /// Calls per second.
    Rate,
    /// The share of calls that go ahead.
    Share,
}

impl Window {
    /// The longest latency of a call that ended well. A longer one is that of a clock that jumped,
    /// and no sample. Calls that failed count, whatever their latency.
    pub const LONGEST_LATENCY: Duration = Duration::from_secs(3_600);
}
