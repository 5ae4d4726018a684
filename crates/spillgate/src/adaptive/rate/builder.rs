use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::Mutex;

use super::super::ranking::Ranking;
use super::super::regulator::{Regulator, RegulatorSettings};
use super::super::{Controller, Signal};
use super::course::Course;
use super::range::RateRange;
use super::{AdaptiveRate, Moving};
use crate::algorithm::TokenBucket;
use crate::{Clock, Error, KeyedState, Quota, SystemClock, Table, WhenFull};

/// Builds an [`AdaptiveRate`].
#[must_use = "a builder does nothing until `build`"]
pub struct AdaptiveRateBuilder<K: ?Sized, C = SystemClock> {
    pub(super) controller: Box<dyn Controller>,
    pub(super) signal: Option<Box<dyn Signal>>,
    pub(super) range: RangeInclusive<Quota>,
    start: Option<f64>,
    capacity: usize,
    when_full: WhenFull,
    pub(super) by_priority: bool,
    clock: C,
    key: PhantomData<fn(&K)>,
}

/// Takes 2.6 MB.
const DEFAULT_CAPACITY: usize = 100_000;

impl<K: Hash + ?Sized> AdaptiveRate<K> {
    /// A rate between two quotas. Their bursts move with it.
    pub fn builder(
        controller: impl Controller + 'static,
        range: RangeInclusive<Quota>,
    ) -> AdaptiveRateBuilder<K> {
        AdaptiveRateBuilder {
            controller: Box::new(controller),
            signal: None,
            range,
            start: None,
            capacity: DEFAULT_CAPACITY,
            when_full: WhenFull::default(),
            by_priority: false,
            clock: SystemClock,
            key: PhantomData,
        }
    }
}

impl<K: Hash + ?Sized, C: Clock> AdaptiveRateBuilder<K, C> {
    /// Sets the clock: the system's by default.
    pub fn clock<D: Clock>(self, clock: D) -> AdaptiveRateBuilder<K, D> {
        AdaptiveRateBuilder {
            clock,
            controller: self.controller,
            signal: self.signal,
            range: self.range,
            start: self.start,
            capacity: self.capacity,
            when_full: self.when_full,
            by_priority: self.by_priority,
            key: PhantomData,
        }
    }

    /// Sets what the controller looks at beside calls. With a signal, it takes a step every
    /// 500 ms; without one every second, if ten calls have ended in it.
    pub fn signal(mut self, signal: impl Signal + 'static) -> Self {
        self.signal = Some(Box::new(signal));
        self
    }

    /// Sets where the limit begins, in calls per second. Default: ten times the minimum, or the
    /// maximum if that is less.
    pub fn start(mut self, per_second: f64) -> Self {
        self.start = Some(per_second);
        self
    }

    /// Sets how many callers can have something spent at the same time: 100,000 by default, at
    /// about 26 bytes each (52 up to 4,096).
    pub fn capacity(mut self, callers: usize) -> Self {
        self.capacity = callers;
        self
    }

    /// Sets what happens to a new caller when there is no room for it.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Sheds from the lowest [`Priority`](crate::adaptive::Priority): the last quarter of a burst is
    /// for those that are above. Default: whoever comes first is served.
    pub fn by_priority(mut self, by_priority: bool) -> Self {
        self.by_priority = by_priority;
        self
    }

    /// Builds it, and allocates its memory.
    ///
    /// # Errors
    ///
    /// If a quota never refills or cannot be counted by a token bucket, the minimum is above the
    /// maximum, the capacity is 0, or there is not enough memory.
    pub fn build(self) -> Result<AdaptiveRate<K, C>, Error> {
        let range = RateRange::new(&self.range)?;
        let (capacity, when_full) = (self.capacity, self.when_full);
        let ranking = Ranking::new(self.by_priority);
        let (settings, clock) = self.into_settings(&range);
        let regulator = Regulator::new(settings);
        let quota = range.quota(regulator.limit());
        let course = Course::new(&quota, &range)?;
        let rule = TokenBucket::new(&range.max())?.into();
        let table = Table::with_hasher(rule, capacity, when_full, KeyedState::new())?;
        let moving = Moving { range: Mutex::new(range), course, ranking };
        Ok(AdaptiveRate { table, clock, moving, regulator, key: PhantomData })
    }

    pub(super) fn into_settings(self, range: &RateRange) -> (RegulatorSettings, C) {
        let (min, max) = range.rates();
        let start = self.start.filter(|start| !start.is_nan()).unwrap_or(max.min(10.0 * min));
        let Self { controller, signal, clock, .. } = self;
        (RegulatorSettings { controller, signal, min, max, start }, clock)
    }
}

impl<K: ?Sized, C> fmt::Debug for AdaptiveRateBuilder<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptiveRateBuilder")
            .field("controller", &self.controller)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}
