//! Adaptive limits, as they are written.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::At;

/// What moves an adaptive limit, and between which bounds.
///
/// A range of numbers limits how many requests are in flight, a range of quotas how many come in,
/// and [`errors`](Self::errors) lets a share of all requests through.
///
/// ```
/// use std::time::Duration;
///
/// use spillgate_policy::{Adaptive, Limit, Policy};
///
/// let policy = Policy::builder()
///     // Finds by itself how many requests the service can work on at once.
///     .limit(Limit::adaptive("service", Adaptive::auto(10..=500)))
///     // Keeps nine of ten searches below 40 ms.
///     .limit(
///         Limit::adaptive("search", Adaptive::target(Duration::from_millis(40), 2..=100))
///             .path("/search"),
///     )
///     // Keeps the processor near 80 %, by what each caller may ask.
///     .limit(
///         Limit::adaptive("fair", Adaptive::load(0.8, "10/s"..="200/s")).per(["caller"]),
///     )
///     .build()?;
/// assert!(policy.limits().eq(["service", "search", "fair"]));
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
#[derive(Clone)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
#[must_use = "it does nothing until it is part of a limit"]
pub struct Adaptive {
    /// What moves the limit: `auto` finds it by latency, `target` keeps a latency, `load` keeps a
    /// load of the processor, `aimd` and `errors` look at failures. Default: by `signal`; without
    /// either `auto`.
    pub(crate) controller: Option<At<String>>,
    /// What the controller looks at: `latency`, `queue-wait`, `errors`, `cpu`, `process-cpu`,
    /// `machine-cpu` or `cgroup-cpu`. Default: by `controller`.
    pub(crate) signal: Option<At<String>>,
    /// What the signal is kept near: a duration such as `40ms` for `target`, a number such as 0.8
    /// for `load`.
    pub(crate) target: Option<At<Level>>,
    /// For `errors`: the share of requests that should succeed, between 0 and 1. Default: 0.95.
    pub(crate) threshold: Option<At<f64>>,
    /// For `errors`: how fast it reacts, 0.1 to 10. Default: 1.
    pub(crate) aggression: Option<At<f64>>,
    /// The lowest limit: a number of requests in flight, a quota such as `10/s`, or a share of all
    /// requests for `errors`. Required, except for `errors`: 0.2 there.
    pub(crate) min: Option<At<Level>>,
    /// The highest limit, written like `min`. Required, except for `errors`, which has none.
    pub(crate) max: Option<At<Level>>,
    /// Where the limit begins, written like `min`. Default: ten times `min`, or `max` if that is
    /// less; 1 for `errors`.
    pub(crate) start: Option<At<Level>>,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) closure: Option<SignalClosure>,
    /// Where it begins in the file.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) at: At<()>,
}

/// A number or a text: permits, a share or a load; a quota or a duration.
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged, inline))]
pub(crate) enum Level {
    Number(f64),
    Text(String),
}

/// Says how loaded something is; `None` if that cannot be known.
pub(crate) type SignalClosure = Arc<dyn Fn() -> Option<f64> + Send + Sync>;

/// The lowest and the highest of an adaptive limit: numbers of requests in flight, or
/// quotas.
///
/// ```
/// use spillgate_policy::AdaptiveBounds;
///
/// let in_flight: AdaptiveBounds = (10..=500).into();
/// let rates: AdaptiveBounds = ("10/s"..="200/s").into();
/// # drop((in_flight, rates));
/// ```
#[derive(Clone, Debug)]
pub struct AdaptiveBounds {
    min: Level,
    max: Level,
}

impl From<RangeInclusive<u32>> for AdaptiveBounds {
    fn from(range: RangeInclusive<u32>) -> Self {
        let (min, max) = range.into_inner();
        Self { min: Level::Number(min.into()), max: Level::Number(max.into()) }
    }
}

impl From<RangeInclusive<&str>> for AdaptiveBounds {
    fn from(range: RangeInclusive<&str>) -> Self {
        let (min, max) = range.into_inner();
        Self { min: Level::Text(min.to_owned()), max: Level::Text(max.to_owned()) }
    }
}

impl Adaptive {
    /// Finds how many requests a service can work on at once, by their latency. Needs no other
    /// numbers.
    pub fn auto(bounds: impl Into<AdaptiveBounds>) -> Self {
        Self::by("auto").between(bounds)
    }

    /// Keeps the latency that nine of ten requests do not exceed near a target, of milliseconds.
    pub fn target(latency: Duration, bounds: impl Into<AdaptiveBounds>) -> Self {
        let text = format!("{} ms", latency.as_nanos().div_ceil(1_000_000));
        Self { target: Some(At::from(Level::Text(text))), ..Self::by("target").between(bounds) }
    }

    /// Keeps the load of the processor near a target between 0 and 1, or another
    /// [signal](Self::signal) near any target above 0.
    pub fn load(target: f64, bounds: impl Into<AdaptiveBounds>) -> Self {
        Self { target: Some(At::from(Level::Number(target))), ..Self::by("load").between(bounds) }
    }

    /// Raises the limit by one while it is used, and lowers it by a tenth when requests fail.
    pub fn aimd(bounds: impl Into<AdaptiveBounds>) -> Self {
        Self::by("aimd").between(bounds)
    }

    /// Lets fewer requests through while they fail: all of them at most, a share of `min` at least.
    pub fn errors(min: f64) -> Self {
        Self { min: Some(At::from(Level::Number(min))), ..Self::by("errors") }
    }

    /// Sets what [`target`](Self::target) and [`load`](Self::load) look at, by its name in a policy
    /// file: `queue-wait`, `process-cpu`, `machine-cpu`, `cgroup-cpu`.
    pub fn signal_named(self, signal: impl Into<String>) -> Self {
        Self { signal: Some(At::from(signal.into())), ..self }
    }

    /// Asks a closure what [`load`](Self::load) keeps near its target, twice a second at most;
    /// `None` if it does not know, which leaves the limit where it is. It runs while a request is decided: it must not block, and
    /// not call the gate.
    pub fn signal(self, signal: impl Fn() -> Option<f64> + Send + Sync + 'static) -> Self {
        Self { closure: Some(Arc::new(signal)), ..self }
    }

    /// Sets the share of requests that should succeed, for [`errors`](Self::errors). Default: 0.95.
    pub fn threshold(self, share: f64) -> Self {
        Self { threshold: Some(At::from(share)), ..self }
    }

    /// Sets how fast [`errors`](Self::errors) reacts: above 1 earlier. Default: 1.
    pub fn aggression(self, aggression: f64) -> Self {
        Self { aggression: Some(At::from(aggression)), ..self }
    }

    /// Sets where a limit on requests in flight, or a share, begins. Default: ten times the
    /// minimum, or the maximum if that is less; a share begins at 1.
    pub fn start(self, limit: f64) -> Self {
        Self { start: Some(At::from(Level::Number(limit))), ..self }
    }

    /// Sets where a rate begins. Default: ten times the minimum, or the maximum if that is less.
    pub fn start_quota(self, quota: impl Into<String>) -> Self {
        Self { start: Some(At::from(Level::Text(quota.into()))), ..self }
    }

    fn by(controller: &str) -> Self {
        let controller = Some(At::from(controller.to_owned()));
        Self { controller, ..Self::blank(At::from(())) }
    }

    fn between(self, bounds: impl Into<AdaptiveBounds>) -> Self {
        let AdaptiveBounds { min, max } = bounds.into();
        Self { min: Some(At::from(min)), max: Some(At::from(max)), ..self }
    }

    pub(crate) fn blank(at: At<()>) -> Self {
        Self {
            controller: None,
            signal: None,
            target: None,
            threshold: None,
            aggression: None,
            min: None,
            max: None,
            start: None,
            closure: None,
            at,
        }
    }

    /// True if it is written like a rate.
    pub(crate) fn has_quotas(&self) -> bool {
        let is_text = |level: &Option<At<Level>>| {
            level.as_ref().is_some_and(|at| matches!(at.value, Level::Text(_)))
        };
        is_text(&self.min) || is_text(&self.max)
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// As a message shows it.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

debug_fields!(self: Adaptive {
    controller: self.controller,
    signal: self.signal,
    min: self.min,
    max: self.max,
    closure: self.closure.is_some(),
});
