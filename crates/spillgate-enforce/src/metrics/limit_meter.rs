//! What is counted about one limit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::adaptive::PriorityClass;
use spillgate_policy::{CountedKey, LimitState, Mode, Outcome, Subject};

use super::quota_used::{UsedShares, used_tenth};
use super::recent_callers::{LimitCallers, Met, RecentCallers, hash};

/// How often requests met a limit, and who made them. Denials are all looked at, allowed calls are
/// sampled, so that a call which passes pays for a counter and a comparison.
pub(crate) struct LimitMeter {
    allowed: AtomicU64,
    /// When an allowed call was looked at last, in nanoseconds.
    sampled: AtomicU64,
    denied: AtomicU64,
    shadow_denied: AtomicU64,
    /// By priority class, the lowest first, if the limit sheds.
    shed: OnceLock<ShedCounts>,
    capacity: usize,
    watched: Mutex<Option<Watched>>,
}

type ShedCounts = [AtomicU64; PriorityClass::ALL.len()];

/// An allowed call is looked at so often, at most. A limit with less traffic misses none.
const SAMPLE_INTERVAL: u64 = Duration::from_millis(50).as_nanos() as u64;

/// A decision that is dated so much earlier than the last sample is after a step of the clock.
const CLOCK_STEP: u64 = Duration::from_secs(5).as_nanos() as u64;

/// The time of the store: decisions are dated by it, or by a clock elsewhere that differs.
pub(crate) type StoreClock = dyn Fn() -> Timestamp + Send + Sync;

struct Watched {
    recent: RecentCallers,
    sample: Option<Sample>,
    /// Since the start.
    used: UsedShares,
}

/// An allowed call that stands for those after it, until the next one is looked at. If it stood for
/// those before, whoever calls first after a burst of others would be taken for them.
struct Sample {
    hash: u64,
    key: CountedKey<'static>,
    tenth: Option<usize>,
    /// How many calls it stands for already, and all before it.
    counted: u64,
}

/// How often requests met a limit, since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitCounts {
    /// The limit's name.
    pub limit: String,
    /// Requests that went ahead.
    pub allowed: u64,
    /// Requests that the limit denied.
    pub denied: u64,
    /// Requests that it would have denied, but for shadow mode.
    pub shadow_denied: u64,
    /// Requests that an adaptive limit shed.
    pub shed: u64,
}

impl LimitCounts {
    /// A limit that nobody has met.
    #[must_use]
    pub fn new(limit: impl Into<String>) -> Self {
        Self { limit: limit.into(), allowed: 0, denied: 0, shadow_denied: 0, shed: 0 }
    }
}

// Relaxed throughout: counts order nothing.
impl LimitMeter {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            allowed: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            shadow_denied: AtomicU64::new(0),
            shed: OnceLock::new(),
            capacity,
            watched: Mutex::new(None),
        }
    }

    #[inline]
    pub(crate) fn allowed(
        &self,
        subject: Subject<'_>,
        outcome: &Outcome<'_>,
        limit: LimitState<'_>,
        clock: &StoreClock,
    ) {
        let before = self.allowed.fetch_add(1, Ordering::Relaxed);
        let now = limit.decision().now().as_nanos();
        let last = self.sampled.load(Ordering::Relaxed);
        // Wraps if the clock was set back.
        if now.wrapping_sub(last) >= SAMPLE_INTERVAL {
            self.sample(subject, outcome, limit, before, clock);
        }
    }

    #[cold]
    fn sample(
        &self,
        subject: Subject<'_>,
        outcome: &Outcome<'_>,
        limit: LimitState<'_>,
        before: u64,
        clock: &StoreClock,
    ) {
        let (relaxed, at) = (Ordering::Relaxed, limit.decision().now().as_nanos());
        let last = self.sampled.load(relaxed);
        // Decisions of Redis and of this process are dated by clocks that differ a little.
        let is_early = at < last && last - at < CLOCK_STEP;
        if is_early || self.sampled.compare_exchange(last, at, relaxed, relaxed).is_err() {
            return;
        }
        let key = outcome.counted_key(limit, subject);
        let (hash, tenth) = (hash(&key), used_tenth(limit));
        let (key, now) = (key.into_kept(), clock());
        let mut watched = self.lock();
        let watched = watched.get_or_insert_with(|| Watched::new(self.capacity, now));
        watched.settle_sample(before);
        watched.recent.expire(now);
        // Others may have looked meanwhile.
        let counted = watched.sample.as_ref().map_or(before, |last| last.counted.max(before));
        watched.sample = Some(Sample { hash, key, tenth, counted });
    }

    #[cold]
    pub(crate) fn denied(
        &self,
        subject: Subject<'_>,
        outcome: &Outcome<'_>,
        limit: LimitState<'_>,
        clock: &StoreClock,
    ) {
        let (count, met) = match limit.mode() {
            Mode::Shadow => (&self.shadow_denied, Met::ShadowDenied),
            _ => (&self.denied, Met::Denied),
        };
        count.fetch_add(1, Ordering::Relaxed);
        let key = outcome.counted_key(limit, subject);
        let (hash, now) = (hash(&key), clock());
        let mut watched = self.lock();
        let watched = watched.get_or_insert_with(|| Watched::new(self.capacity, now));
        watched.recent.expire(now);
        watched.recent.add(met, hash, 1, || key.into_kept());
    }

    /// Counts a request that was shed.
    #[cold]
    pub(crate) fn shed(&self, class: PriorityClass) {
        let place = PriorityClass::ALL.iter().position(|known| *known == class);
        self.begin_shed()[place.unwrap_or(0)].fetch_add(1, Ordering::Relaxed);
    }

    /// Shows the counts of shed requests from now on.
    pub(crate) fn begin_shed(&self) -> &ShedCounts {
        self.shed.get_or_init(Default::default)
    }

    pub(super) fn counts(&self, limit: &str) -> LimitCounts {
        LimitCounts {
            allowed: self.allowed.load(Ordering::Relaxed),
            denied: self.denied.load(Ordering::Relaxed),
            shadow_denied: self.shadow_denied.load(Ordering::Relaxed),
            shed: self.shed_by_class().map(|(_, count)| count).sum(),
            ..LimitCounts::new(limit)
        }
    }

    /// By priority class; nothing if the limit does not shed.
    pub(super) fn shed_by_class(&self) -> impl Iterator<Item = (PriorityClass, u64)> {
        let counts = self.shed.get().into_iter().flatten();
        PriorityClass::ALL.into_iter().zip(counts.map(|count| count.load(Ordering::Relaxed)))
    }

    /// How many allowed calls left so much of their quota used, since the start.
    pub(super) fn used(&self) -> UsedShares {
        let mut watched = self.lock();
        let Some(watched) = &mut *watched else { return UsedShares::default() };
        watched.settle_sample(self.allowed.load(Ordering::Relaxed));
        watched.used
    }

    /// Who met the limit lately; `None` if nobody did.
    pub(super) fn callers(&self, limit: &str, now: Timestamp, most: usize) -> Option<LimitCallers> {
        let mut watched = self.lock();
        let watched = watched.as_mut()?;
        watched.settle_sample(self.allowed.load(Ordering::Relaxed));
        watched.recent.expire(now);
        Some(watched.recent.report(limit, most))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn new(capacity: usize, now: Timestamp) -> Self {
        let recent = RecentCallers::new(capacity, now);
        Self { recent, sample: None, used: UsedShares::default() }
    }

    /// Counts the sample for all calls since it, of which there were so many with all before.
    fn settle_sample(&mut self, allowed: u64) {
        let Some(sample) = &mut self.sample else { return };
        let calls = allowed.saturating_sub(sample.counted);
        if calls == 0 {
            return;
        }
        sample.counted = allowed;
        self.recent.add(Met::Allowed, sample.hash, calls, || sample.key.clone());
        if let Some(tenth) = sample.tenth {
            self.used[tenth] += calls;
            self.recent.add_used(tenth, calls);
        }
    }
}
