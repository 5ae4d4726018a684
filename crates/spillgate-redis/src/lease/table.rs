use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spillgate::{Decision, KeyedState, Timestamp};

use super::caller_lease::Lease;
use super::recent::Recent;
use super::slice_return::SliceReturn;
use super::source::Named;

/// The leases of many callers.
#[derive(Debug)]
pub(super) struct Table<C> {
    hasher: KeyedState,
    shards: Box<[Aligned<C>]>,
    /// Leases per shard.
    pub(super) room: usize,
}

/// The id of a lease: a hash of limit and key, compared as in [`spillgate::Table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseId(pub(super) u64);

/// Leases that share a lock, and their counters.
#[derive(Debug)]
pub(super) struct Shard<C> {
    leases: HashMap<u64, Lease<C>, BuildHasherDefault<Spread>>,
    pub(super) recent: Recent,
    pub(super) allowed: u64,
    pub(super) denied: u64,
}

/// Avoids false sharing between locks.
#[derive(Debug)]
#[repr(align(64))]
struct Aligned<C>(Mutex<Shard<C>>);

/// How many leases are compared to evict one.
const SOME: usize = 16;

/// Enough to make contention rare, except for one caller.
const SHARDS: usize = 64;

impl<C> Table<C> {
    /// Room for so many leases.
    pub(super) fn new(hasher: KeyedState, capacity: usize) -> Self {
        let room = capacity.div_ceil(SHARDS).max(1);
        let shard = |_| Aligned(Mutex::new(Shard::new(room)));
        Self { hasher, shards: (0..SHARDS).map(shard).collect(), room }
    }

    /// The id of a caller's lease.
    #[inline]
    pub(super) fn id(&self, limit: u64, key: &[u8]) -> LeaseId {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(limit);
        hasher.write(key);
        LeaseId(hasher.finish())
    }

    #[inline]
    pub(super) fn shard(&self, id: LeaseId) -> MutexGuard<'_, Shard<C>> {
        // Other bits than the map uses.
        lock(&self.shards[(id.0 >> 32) as usize % SHARDS])
    }

    /// Every shard in turn.
    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard<C>>> {
        self.shards.iter().map(lock)
    }
}

impl<C> Shard<C> {
    fn new(room: usize) -> Self {
        Self { leases: HashMap::default(), recent: Recent::new(room), allowed: 0, denied: 0 }
    }

    #[inline]
    pub(super) fn lease(&mut self, id: LeaseId) -> Option<&mut Lease<C>> {
        self.leases.get_mut(&id.0)
    }

    /// The lease with this id, created if absent.
    pub(super) fn lease_or(
        &mut self,
        id: LeaseId,
        make: impl FnOnce() -> Lease<C>,
    ) -> &mut Lease<C> {
        self.leases.entry(id.0).or_insert_with(make)
    }

    /// Keeps slices that could not be given back. Returns whether the lease is still the same.
    pub(super) fn keep(&mut self, id: LeaseId, back: &SliceReturn<C>, local: Timestamp) -> bool
    where
        C: Named + Clone,
    {
        self.lease(id).is_some_and(|lease| lease.keep(back, local))
    }

    pub(super) fn remove(&mut self, id: LeaseId) -> Option<Lease<C>> {
        self.leases.remove(&id.0)
    }

    /// Evicts the most idle of a few leases: comparing all would take longer than asking Redis.
    pub(super) fn remove_idle(&mut self, local: Timestamp) -> Option<Lease<C>> {
        let some = self.leases.iter().take(SOME);
        let idlest = some.max_by_key(|(_, lease)| lease.idle(local));
        let id = *idlest?.0;
        self.leases.remove(&id)
    }

    /// Keeps the leases for which this is true.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(LeaseId, &mut Lease<C>) -> bool) {
        self.leases.retain(|id, lease| is_kept(LeaseId(*id), lease));
    }

    /// The number of leases.
    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    /// Counts a decision.
    pub(super) fn answered(&mut self, decision: &Decision) {
        let counter = if decision.is_allowed() { &mut self.allowed } else { &mut self.denied };
        *counter += 1;
    }
}

fn lock<C>(shard: &Aligned<C>) -> MutexGuard<'_, Shard<C>> {
    // Nothing in a shard is half done when a thread may panic.
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The identity hash of a hash.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    #[inline]
    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
