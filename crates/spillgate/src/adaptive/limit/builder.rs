use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::super::diffusion::Diffusion;
use super::super::in_flight::InFlight;
use super::super::ranking::Ranking;
use super::super::regulator::{Regulator, RegulatorSettings};
use super::super::{Controller, Signal};
use super::{AdaptiveLimit, LimitCore};
use crate::{Clock, SystemClock};

/// Builds an [`AdaptiveLimit`].
///
/// ```
/// use spillgate::adaptive::{AdaptiveLimit, Auto};
///
/// let service = AdaptiveLimit::concurrency(Auto::default(), 5..=200).start(20.0).build();
/// assert_eq!(service.status().limit, 20.0);
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct AdaptiveLimitBuilder<C = SystemClock> {
    pub(super) controller: Box<dyn Controller>,
    pub(super) signal: Option<Box<dyn Signal>>,
    pub(super) bounds: Bounds,
    pub(super) start: Option<f64>,
    pub(super) by_priority: bool,
    pub(super) clock: C,
}

/// What is limited, and between which limits.
#[derive(Clone, Copy)]
pub(super) enum Bounds {
    Concurrency { min: u32, max: u32 },
    Share { min: f64 },
}

/// With nothing let through, nobody would see that the service is well again.
const LEAST_SHARE: f64 = 0.01;

impl AdaptiveLimit {
    /// Limits how many calls are in flight, between a minimum and a maximum. A minimum of 0 counts
    /// as 1, and a maximum below the minimum as the minimum.
    pub fn concurrency(
        controller: impl Controller + 'static,
        range: RangeInclusive<u32>,
    ) -> AdaptiveLimitBuilder {
        AdaptiveLimitBuilder::new(controller, Bounds::concurrency(&range))
    }

    /// Lets a share of all calls through: all of them at most, and `min` at least, from 0.01 to 1.
    /// Which ones is neither chance nor the luck of the first: with a share of 0.3, three of any
    /// ten calls in a row.
    ///
    /// ```
    /// use spillgate::adaptive::{AdaptiveLimit, Errors, Priority};
    ///
    /// let upstream = AdaptiveLimit::share(Errors::default(), 0.2).start(0.5).build();
    /// let goes_ahead = [(); 4].map(|()| upstream.try_acquire(Priority::default()).is_ok());
    /// assert_eq!(goes_ahead, [true, false, true, false]);
    /// ```
    pub fn share(controller: impl Controller + 'static, min: f64) -> AdaptiveLimitBuilder {
        AdaptiveLimitBuilder::new(controller, Bounds::share(min))
    }
}

impl AdaptiveLimitBuilder {
    fn new(controller: impl Controller + 'static, bounds: Bounds) -> Self {
        Self {
            controller: Box::new(controller),
            signal: None,
            bounds,
            start: None,
            by_priority: false,
            clock: SystemClock,
        }
    }
}

impl<C: Clock> AdaptiveLimitBuilder<C> {
    /// Sets the clock: the system's by default.
    pub fn clock<D: Clock>(self, clock: D) -> AdaptiveLimitBuilder<D> {
        let Self { controller, signal, bounds, start, by_priority, .. } = self;
        AdaptiveLimitBuilder { controller, signal, bounds, start, by_priority, clock }
    }

    /// Sets what the controller looks at beside calls. With a signal, it takes a step every
    /// 500 ms; without one every second, if ten calls have ended in it.
    pub fn signal(mut self, signal: impl Signal + 'static) -> Self {
        self.signal = Some(Box::new(signal));
        self
    }

    /// Sets where the limit begins. Default: ten times the minimum, or the maximum if that is less;
    /// a share begins at 1.
    pub fn start(mut self, limit: f64) -> Self {
        self.start = Some(limit);
        self
    }

    /// Sheds from the lowest [`Priority`](crate::adaptive::Priority). Default: whoever comes first
    /// is served.
    pub fn by_priority(mut self, by_priority: bool) -> Self {
        self.by_priority = by_priority;
        self
    }

    /// Builds it.
    #[must_use]
    pub fn build(self) -> AdaptiveLimit<C> {
        let (bounds, by_priority) = (self.bounds, self.by_priority);
        let (settings, clock) = self.into_settings();
        let regulator = Regulator::new(settings);
        let limit = regulator.limit();
        let (share, permits, max) = match bounds {
            Bounds::Concurrency { max, .. } => (None, permits(limit), max),
            Bounds::Share { .. } => (Some(Diffusion::new(limit)), u32::MAX, u32::MAX),
        };
        let shared = LimitCore {
            clock,
            in_flight: InFlight::new(permits),
            max: AtomicU32::new(max),
            share,
            ranking: Ranking::new(by_priority),
            regulator,
        };
        AdaptiveLimit { shared: Arc::new(shared) }
    }

    pub(super) fn into_settings(self) -> (RegulatorSettings, C) {
        let Self { controller, signal, bounds, start, clock, .. } = self;
        let (min, max) = bounds.range();
        let start = start.filter(|start| !start.is_nan()).unwrap_or(bounds.start());
        (RegulatorSettings { controller, signal, min, max, start }, clock)
    }
}

impl Bounds {
    pub(super) fn concurrency(range: &RangeInclusive<u32>) -> Self {
        let min = (*range.start()).max(1);
        Self::Concurrency { min, max: min.max(*range.end()) }
    }

    fn share(min: f64) -> Self {
        Self::Share { min: if min.is_nan() { LEAST_SHARE } else { min.clamp(LEAST_SHARE, 1.0) } }
    }

    pub(super) fn range(self) -> (f64, f64) {
        match self {
            Self::Concurrency { min, max } => (min.into(), max.into()),
            Self::Share { min } => (min, 1.0),
        }
    }

    fn start(self) -> f64 {
        match self {
            Self::Concurrency { min, max } => f64::from(max).min(10.0 * f64::from(min)),
            Self::Share { .. } => 1.0,
        }
    }
}

/// How many calls a limit lets be in flight: at least one. A cast saturates.
pub(super) fn permits(limit: f64) -> u32 {
    (limit as u32).max(1)
}

impl<C> fmt::Debug for AdaptiveLimitBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = self.bounds.range();
        f.debug_struct("AdaptiveLimitBuilder")
            .field("controller", &self.controller)
            .field("min", &min)
            .field("max", &max)
            .finish_non_exhaustive()
    }
}
