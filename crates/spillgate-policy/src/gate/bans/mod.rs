//! The bans in force.

mod admin;
mod ban;
mod explain;
mod lookup;
mod name;

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use spillgate::{KeyedState, Timestamp};

pub use self::admin::BanUsage;
pub use self::ban::Ban;
pub(super) use self::ban::caller_text;
pub use self::explain::BanExplanation;
pub(super) use self::lookup::{Banned, BansAt};
use crate::key::Value;
use crate::{Caller, Key, Mode};

/// The most bans in force at once.
const CAPACITY: usize = 100_000;

/// Lookups of different callers seldom wait for the same lock.
const SHARDS: usize = 64;

/// The bans in force, by the fingerprints of their callers. Bounded: when it is full, the ban
/// nearest its end makes room for another.
pub(super) struct Bans {
    /// How many there are, so that a gate without bans looks no further. Relaxed, like the others:
    /// what is read after it is under a lock.
    count: AtomicUsize,
    /// How many there are of each kind of caller.
    counts: [AtomicUsize; 3],
    shards: Box<[RwLock<Shard>]>,
    /// Ends and fingerprints. Held while anything changes.
    ends: Mutex<BTreeSet<(Timestamp, u64)>>,
    hasher: KeyedState,
    capacity: usize,
    evicted: AtomicU64,
}

type Shard = HashMap<u64, Arc<Ban>, KeyedState>;

/// What becomes of a ban that is in force already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    /// The new one replaces it.
    Replaced,
    /// It stays if it is stricter: lasts longer, or enforces and the new one does not.
    Stays,
}

impl Default for Bans {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl Bans {
    fn with_capacity(capacity: usize) -> Self {
        let hasher = KeyedState::new();
        Self {
            count: AtomicUsize::new(0),
            counts: Default::default(),
            shards: (0..SHARDS).map(|_| RwLock::new(HashMap::with_hasher(hasher))).collect(),
            ends: Mutex::default(),
            hasher,
            capacity,
            evicted: AtomicU64::new(0),
        }
    }

    /// True if nobody is banned.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// True if an address, an API key or a user is banned.
    fn has(&self, kind: usize) -> bool {
        self.counts[kind].load(Ordering::Relaxed) > 0
    }

    /// Puts a ban in force. Returns whether it is: a stricter one may stay.
    pub(super) fn set(&self, ban: Arc<Ban>, earlier: Earlier, now: Timestamp) -> bool {
        let mut ends = self.lock();
        self.drop_expired(&mut ends, now);
        let fingerprint = self.fingerprint(Value::from(&ban.caller));
        if let Some(old) = self.get(fingerprint) {
            let strictness = |ban: &Ban| (ban.mode == Mode::Enforce, ban.until);
            if earlier == Earlier::Stays && strictness(&old) >= strictness(&ban) {
                return false;
            }
            self.take(&mut ends, fingerprint);
        }
        if ends.len() >= self.capacity {
            if let Some((_, nearest)) = ends.first().copied() {
                self.take(&mut ends, nearest);
                self.evicted.fetch_add(1, Ordering::Relaxed);
            }
        }
        ends.insert((ban.until, fingerprint));
        let kind = kind(&ban.caller);
        self.write(fingerprint, |shard| shard.insert(fingerprint, ban));
        self.counts[kind].fetch_add(1, Ordering::Relaxed);
        self.count.store(ends.len(), Ordering::Relaxed);
        true
    }

    /// Ends a ban. Returns whether it was in force.
    pub(super) fn lift(&self, caller: &Caller<'_>, now: Timestamp) -> bool {
        let mut ends = self.lock();
        self.drop_expired(&mut ends, now);
        self.take(&mut ends, self.fingerprint(Value::from(caller))).is_some()
    }

    /// Every ban in force, those that end first at the beginning.
    pub(super) fn list(&self, now: Timestamp) -> Vec<Arc<Ban>> {
        let mut ends = self.lock();
        self.drop_expired(&mut ends, now);
        ends.iter().filter_map(|(_, fingerprint)| self.get(*fingerprint)).collect()
    }

    /// How many bans were dropped for want of room.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    fn drop_expired(&self, ends: &mut BTreeSet<(Timestamp, u64)>, now: Timestamp) {
        while let Some((_, fingerprint)) = ends.first().copied().filter(|(end, _)| *end <= now) {
            self.take(ends, fingerprint);
        }
    }

    /// Removes a ban.
    fn take(&self, ends: &mut BTreeSet<(Timestamp, u64)>, fingerprint: u64) -> Option<Arc<Ban>> {
        let ban = self.write(fingerprint, |shard| shard.remove(&fingerprint))?;
        ends.remove(&(ban.until, fingerprint));
        self.counts[kind(&ban.caller)].fetch_sub(1, Ordering::Relaxed);
        self.count.store(ends.len(), Ordering::Relaxed);
        Some(ban)
    }

    fn get(&self, fingerprint: u64) -> Option<Arc<Ban>> {
        let shard = &self.shards[fingerprint as usize % SHARDS];
        shard.read().unwrap_or_else(PoisonError::into_inner).get(&fingerprint).cloned()
    }

    fn write<T>(&self, fingerprint: u64, change: impl FnOnce(&mut Shard) -> T) -> T {
        let shard = &self.shards[fingerprint as usize % SHARDS];
        change(&mut shard.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn fingerprint(&self, caller: Value<'_>) -> u64 {
        self.hasher.hash_one(Key::of_caller(caller))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(Timestamp, u64)>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const API_KEY: usize = 0;
const USER: usize = 1;
const IP: usize = 2;

/// The place of the count of a caller's kind.
fn kind(caller: &Caller<'_>) -> usize {
    match caller {
        Caller::ApiKey(_) => API_KEY,
        Caller::User(_) => USER,
        Caller::Ip(_) | Caller::Anonymous => IP,
    }
}

#[cfg(test)]
mod tests;
