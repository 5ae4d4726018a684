use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::Decision;
use crate::sync::lock_plain;

/// Decisions of a limiter since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Allowed calls, except those of cost 0.
    pub allowed: u64,
    /// Denied calls.
    pub denied: u64,
    /// Callers evicted while they had something spent.
    pub evictions: u64,
    /// Spends of a denied [`check_all`](crate::check_all) that could not be undone.
    pub kept_spends: u64,
}

/// Counts calls without contention.
///
/// Each thread has its own shard, so it needs no atomic addition: it loads, adds and stores.
/// Threads beyond the number of shards share one more, and add atomically there.
pub(super) struct Counters {
    /// For the first threads, without an indirection: saves half a nanosecond.
    near: [Shard; NEAR],
    /// For the others, up to [`shard_count`].
    far: Box<[Shard]>,
    shared: Shard,
    kept_spends: AtomicU64,
}

const NEAR: usize = 16;

#[derive(Default)]
#[repr(align(64))]
struct Shard {
    allowed: AtomicU64,
    denied: AtomicU64,
}

// All orderings here are relaxed: counts order nothing.
impl Counters {
    pub(super) fn new() -> Self {
        Self {
            near: Default::default(),
            far: (NEAR..shard_count()).map(|_| Shard::default()).collect(),
            shared: Shard::default(),
            kept_spends: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(super) fn count(&self, decision: &Decision) {
        if decision.cost() == 0 {
            return;
        }
        // Not by reference: the decision would have to be in memory.
        let is_allowed = decision.is_allowed();
        match self.near.get(INDEX.get()) {
            Some(shard) => shard.count_alone(is_allowed),
            None => self.count_elsewhere(is_allowed),
        }
    }

    #[cold]
    fn count_elsewhere(&self, is_allowed: bool) {
        let index = thread_index();
        match self.near.get(index).or_else(|| self.far.get(index - NEAR)) {
            Some(shard) => shard.count_alone(is_allowed),
            None => {
                self.shared.counter(is_allowed).fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Counts a call that gave up waiting.
    #[cfg(feature = "tokio")]
    pub(super) fn count_denied(&self) {
        self.shared.denied.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn kept_spend(&self) {
        self.kept_spends.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sum(&self, evictions: u64) -> Counts {
        let kept_spends = self.kept_spends.load(Ordering::Relaxed);
        let mut counts = Counts { evictions, kept_spends, ..Counts::default() };
        for shard in self.near.iter().chain(&self.far).chain([&self.shared]) {
            counts.allowed += shard.allowed.load(Ordering::Relaxed);
            counts.denied += shard.denied.load(Ordering::Relaxed);
        }
        counts
    }
}

impl Shard {
    /// Counts in a shard that only this thread writes to.
    #[inline(always)]
    fn count_alone(&self, is_allowed: bool) {
        let counter = self.counter(is_allowed);
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[inline(always)]
    fn counter(&self, is_allowed: bool) -> &AtomicU64 {
        if is_allowed { &self.allowed } else { &self.denied }
    }
}

/// Twice as many shards as cores: runtimes run one thread per core, and programs some more.
fn shard_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| 2 * std::thread::available_parallelism().map_or(16, usize::from))
}

/// Not known yet.
const UNKNOWN: usize = usize::MAX;
/// Beyond every shard: for a thread that is exiting.
const ENDING: usize = usize::MAX - 1;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(UNKNOWN) };
    static OWNED: Owned = Owned::take();
}

/// A small number, unique among running threads.
fn thread_index() -> usize {
    if INDEX.get() == UNKNOWN {
        INDEX.set(OWNED.try_with(|owned| owned.0).unwrap_or(ENDING));
    }
    INDEX.get()
}

/// An index that is released when its thread exits, so that short-lived threads do not use
/// them up.
struct Owned(usize);

static FREE: Mutex<FreeIndices> = Mutex::new(FreeIndices::new());
static NEXT: AtomicUsize = AtomicUsize::new(0);

pub(crate) type FreeIndices = BTreeSet<usize>;

/// Prevents threads from taking or releasing an index.
pub(crate) fn hold_threads() -> MutexGuard<'static, FreeIndices> {
    lock_plain(&FREE)
}

impl Owned {
    fn take() -> Self {
        // The lock makes the counts of the last owner visible to the next.
        let mut free = lock_plain(&FREE);
        Self(free.pop_first().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        INDEX.set(ENDING);
        lock_plain(&FREE).insert(self.0);
    }
}
