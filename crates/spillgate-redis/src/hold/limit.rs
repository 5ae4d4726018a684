use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use spillgate::{Concurrency, Quota};
use spillgate_policy::store::LimitSpec;

use crate::Name;

/// The permits of one concurrency limit that are in flight on this node. It outlives policies, since
/// permits do.
#[derive(Debug)]
pub(crate) struct HeldLimit {
    /// By the names of callers.
    pub(crate) in_flight: Concurrency<Name>,
    /// Time to live of slices, in nanoseconds: a policy may change it.
    ttl: AtomicU64,
    /// Permits that expired before they were released.
    expired: AtomicU64,
    /// How many permits single callers have, if that was set at run time.
    overrides: RwLock<HashMap<Name, u32>>,
    /// Their number, so that usually no lock is taken.
    overridden: AtomicUsize,
}

// Relaxed throughout: each is a number that orders nothing else.
impl HeldLimit {
    fn new(spec: &LimitSpec, ttl: Duration) -> Self {
        let limit = Self {
            // What there is depends on the slice, which each call names.
            in_flight: Concurrency::builder(0).capacity(spec.capacity).build(),
            ttl: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            overrides: RwLock::default(),
            overridden: AtomicUsize::new(0),
        };
        limit.set_ttl(ttl);
        limit
    }

    fn set_ttl(&self, ttl: Duration) {
        self.ttl.store(u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_nanos(self.ttl.load(Ordering::Relaxed))
    }

    pub(crate) fn add_expired(&self, count: u32) {
        self.expired.fetch_add(count.into(), Ordering::Relaxed);
    }

    pub(crate) fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// Sets or removes the number of permits of a caller.
    pub(crate) fn set_override(&self, name: Name, permits: Option<u32>) {
        let mut overrides = self.overrides.write().unwrap_or_else(PoisonError::into_inner);
        match permits {
            Some(permits) => overrides.insert(name, permits),
            None => overrides.remove(&name),
        };
        self.overridden.store(overrides.len(), Ordering::Relaxed);
    }

    /// The number of permits of a caller that was set at run time.
    pub(crate) fn own(&self, name: &Name) -> Option<u32> {
        if self.overridden.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.overrides.read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}

/// The concurrency limits of this node, by what they count.
#[derive(Debug, Default)]
pub(crate) struct HeldLimits(Mutex<HashMap<Name, Arc<HeldLimit>>>);

impl HeldLimits {
    /// The permits of a limit: those of an earlier policy, if it had the limit.
    pub(crate) fn of(&self, id: Name, spec: &LimitSpec) -> Option<Arc<HeldLimit>> {
        let ttl = spec.hold?.ttl;
        let mut limits = self.limits();
        let limit = limits.entry(id).or_insert_with(|| Arc::new(HeldLimit::new(spec, ttl)));
        limit.set_ttl(ttl);
        limit.in_flight.set_capacity(spec.capacity);
        Some(Arc::clone(limit))
    }

    /// Forgets limits that no policy has, and nobody holds permits of.
    pub(crate) fn forget_unused(&self) {
        self.limits()
            .retain(|_, limit| Arc::strong_count(limit) > 1 || limit.in_flight.active_keys() > 0);
    }

    /// Permits in flight on this node, and those that expired before they were released.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let limits = self.limits();
        let held = limits.values().map(|limit| limit.in_flight.total_in_flight()).sum();
        (held, limits.values().map(|limit| limit.expired()).sum())
    }

    fn limits(&self) -> MutexGuard<'_, HashMap<Name, Arc<HeldLimit>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many permits a quota stands for.
pub(crate) fn permits_of(quota: &Quota) -> u32 {
    u32::try_from(quota.burst()).unwrap_or(u32::MAX)
}
