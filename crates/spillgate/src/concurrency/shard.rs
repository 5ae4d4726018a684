//! The counts: one map per shard, under a lock.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::busy::{Busy, BusyCause, saturated};
#[cfg(feature = "tokio")]
use super::queue::Waiters;
use crate::Fingerprint;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};

// Loom explores every interleaving, so it gets the fewest.
#[cfg(not(spillgate_loom))]
pub(super) const SHARDS: usize = 64;
#[cfg(spillgate_loom)]
pub(super) const SHARDS: usize = 2;

/// A shard with room for fewer entries than this never gives memory back.
const SHRINK_ABOVE: usize = 64;

/// What all shards share.
///
/// The limit and the capacity are read while a shard is locked. So who changes one and then
/// locks every shard knows that nobody still uses the old one.
pub(super) struct Shared {
    limit: AtomicU64,
    capacity: AtomicU64,
    /// How many entries all shards have: at most the capacity, unless that was lowered.
    keys: AtomicU64,
    #[cfg(feature = "tokio")]
    pub(super) queue: usize,
}

/// A call that needs permits.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) key: Fingerprint,
    pub(super) count: u32,
    /// Its own limit, if it brings one.
    pub(super) limit: Option<u32>,
}

/// The keys of one shard. A permit keeps its shard alive, and not the others: they would all
/// contend for one reference count.
#[repr(align(64))]
pub(super) struct Shard {
    state: Mutex<State>,
    pub(super) shared: Arc<Shared>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) entries: HashMap<Fingerprint, Entry, BuildHasherDefault<PassThrough>>,
    /// Permits of all entries.
    held: u64,
    /// Waiting calls of all entries.
    pub(super) waiting: usize,
    #[cfg(feature = "tokio")]
    pub(super) next_waiter: u64,
}

/// A key with permits in flight. A call only waits while others hold permits, so one without
/// any has no entry.
pub(super) struct Entry {
    /// More than a `u32`: it must not overflow, however many permits go beyond the limit.
    pub(super) held: u64,
    #[cfg(feature = "tokio")]
    pub(super) waiters: Waiters,
}

// Relaxed: a lock orders what matters, and the number of keys orders nothing.
impl Shared {
    pub(super) fn new(limit: u32, capacity: usize, queue: usize) -> Self {
        #[cfg(not(feature = "tokio"))]
        let _ = queue;
        Self {
            limit: AtomicU64::new(limit.into()),
            capacity: AtomicU64::new(capacity as u64),
            keys: AtomicU64::new(0),
            #[cfg(feature = "tokio")]
            queue,
        }
    }

    pub(super) fn limit(&self) -> u32 {
        saturated(self.limit.load(Ordering::Relaxed))
    }

    pub(super) fn set_limit(&self, limit: u32) {
        self.limit.store(limit.into(), Ordering::Relaxed);
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_capacity(&self, keys: usize) {
        self.capacity.store(keys as u64, Ordering::Relaxed);
    }

    pub(super) fn active_keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed) as usize
    }

    /// Counts one more key, if there is room for it.
    fn enter(&self) -> bool {
        let capacity = self.capacity.load(Ordering::Relaxed);
        let more = |keys| (keys < capacity).then_some(keys + 1);
        self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn leave(&self) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shard {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { state: Mutex::new(State::default()), shared }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Holds permits, and returns how many the key has then.
    #[inline]
    pub(super) fn try_hold(&self, call: &Call) -> Result<u64, Busy> {
        self.try_hold_in(&mut self.lock(), call)
    }

    #[inline]
    pub(super) fn try_hold_in(&self, state: &mut State, call: &Call) -> Result<u64, Busy> {
        let limit = u64::from(call.limit.unwrap_or_else(|| self.shared.limit()));
        let count = u64::from(call.count);
        let known = state.entries.get_mut(&call.key);
        let held = known.as_ref().map_or(0, |entry| entry.held);
        if count > limit {
            return Err(Busy::new(BusyCause::AboveLimit, held));
        }
        let total = match known {
            Some(entry) if entry.has_waiting() => return Err(Busy::new(BusyCause::Queued, held)),
            Some(entry) if held + count <= limit => {
                entry.held += count;
                entry.held
            }
            Some(_) => return Err(Busy::new(BusyCause::Held, held)),
            None if self.shared.enter() => {
                state.entries.insert(call.key, Entry::holding(count));
                count
            }
            None => return Err(Busy::new(BusyCause::NoRoom, held)),
        };
        state.held += count;
        Ok(total)
    }

    /// Holds permits in any case but one: no room for another key.
    pub(super) fn hold_beyond(&self, key: Fingerprint, count: u32) -> Option<u64> {
        let mut state = self.lock();
        if !state.entries.contains_key(&key) && !self.shared.enter() {
            return None;
        }
        state.held += u64::from(count);
        let entry = state.entries.entry(key).or_insert_with(|| Entry::holding(0));
        entry.held += u64::from(count);
        Some(entry.held)
    }

    /// Releases permits, and grants them to those who wait.
    #[inline]
    pub(super) fn release(self: &Arc<Self>, key: Fingerprint, count: u32) {
        let mut state = self.lock();
        let has_waiting = state.subtract(key, count.into());
        match has_waiting {
            #[cfg(feature = "tokio")]
            true => self.admit(state, key),
            _ => self.remove_idle(&mut state, key),
        }
    }

    /// Removes an entry that holds nothing.
    pub(super) fn remove_idle(&self, state: &mut State, key: Fingerprint) {
        if state.entries.get(&key).is_none_or(|entry| entry.held > 0) {
            return;
        }
        state.entries.remove(&key);
        self.shared.leave();
        // By much, so that the next shrinking is as many removals away as this one takes moves.
        let room = state.entries.capacity();
        if room > SHRINK_ABOVE && state.entries.len() < room / 8 {
            state.entries.shrink_to(room / 4);
        }
    }

    pub(super) fn in_flight(&self, key: Fingerprint) -> u32 {
        saturated(self.lock().entries.get(&key).map_or(0, |entry| entry.held))
    }

    pub(super) fn total_in_flight(&self) -> u64 {
        self.lock().held
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Waits for whoever has the lock: there is nobody to admit.
    #[cfg(not(feature = "tokio"))]
    pub(super) fn admit_waiting(self: &Arc<Self>) {
        drop(self.lock());
    }
}

impl State {
    /// Takes permits off, and returns whether somebody waits for them.
    #[inline]
    pub(super) fn subtract(&mut self, key: Fingerprint, count: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        entry.held -= count;
        self.held -= count;
        entry.has_waiting()
    }

    #[cfg(feature = "tokio")]
    pub(super) fn add(&mut self, count: u64) {
        self.held += count;
    }
}

impl Entry {
    fn holding(held: u64) -> Self {
        Self {
            held,
            #[cfg(feature = "tokio")]
            waiters: Waiters::default(),
        }
    }

    #[inline]
    fn has_waiting(&self) -> bool {
        #[cfg(feature = "tokio")]
        return !self.waiters.is_empty();
        #[cfg(not(feature = "tokio"))]
        false
    }
}

/// Fingerprints are hashes already.
#[derive(Default)]
pub(super) struct PassThrough(u64);

impl Hasher for PassThrough {
    fn write(&mut self, bytes: &[u8]) {
        // Never called for a fingerprint, but right for anything.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
