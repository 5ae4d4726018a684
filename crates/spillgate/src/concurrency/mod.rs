//! Limits on how much is in progress at once.

mod builder;
mod busy;
mod permit;
#[cfg(feature = "tokio")]
mod queue;
mod shard;

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::Arc;

pub use self::builder::ConcurrencyBuilder;
pub use self::busy::{Busy, BusyCause};
pub use self::permit::Permit;
use self::shard::{Call, SHARDS, Shard, Shared};
use crate::{Fingerprint, KeyedState};

/// Limits how many calls per key are in progress at once.
///
/// A call holds a [`Permit`] while it is in progress, and releases it by dropping it. For each
/// key at most `limit` permits are held at any time: the count is exact, whatever the number of
/// threads.
///
/// | | one permit | several | under another limit |
/// |---|---|---|---|
/// | now or not at all | [`try_acquire`](Self::try_acquire) | [`try_acquire_n`](Self::try_acquire_n) | [`try_acquire_within`](Self::try_acquire_within) |
/// | wait in a queue (feature `tokio`) | `acquire` | `acquire_n` | `acquire_within` |
/// | in any case | | [`acquire_beyond`](Self::acquire_beyond) | |
///
/// Several permits are acquired all or none. A count of 0 always succeeds and holds nothing. A
/// count above the limit can never succeed, so it fails at once, also in the queue.
///
/// ```
/// use spillgate::Concurrency;
///
/// let uploads: Concurrency<str> = Concurrency::new(2);
/// let first = uploads.try_acquire("alice").expect("nothing is in progress");
/// let second = uploads.try_acquire("alice").expect("one of two is in progress");
/// assert!(uploads.try_acquire("alice").is_err());
/// assert!(uploads.try_acquire("bob").is_ok(), "each key has its own");
/// drop(first);
/// assert!(uploads.try_acquire("alice").is_ok());
/// # drop(second);
/// ```
///
/// # Keys
///
/// As for [`Limiter`](crate::Limiter): only a 57-bit fingerprint of the key is kept, so two keys
/// share a count with a chance of 2⁻⁵⁷.
///
/// # Memory and threads
///
/// A key takes about 30 bytes while it has permits in flight or calls waiting, and nothing
/// otherwise. The number of such keys is bounded by the
/// [capacity](ConcurrencyBuilder::capacity); a new key beyond it is refused, and no key is ever
/// evicted. Clones share the counts, and a permit may outlive them all. Each operation takes one
/// of 64 locks, by key, for some nanoseconds.
pub struct Concurrency<K: ?Sized, S = KeyedState> {
    shards: Arc<[Arc<Shard>]>,
    shared: Arc<Shared>,
    hasher: S,
    key: PhantomData<fn(&K)>,
}

impl<K: Hash + ?Sized> Concurrency<K> {
    /// Allows `limit` calls per key at once. A limit of 0 allows none.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self::builder(limit).build()
    }

    /// A builder, for more than a limit.
    pub fn builder(limit: u32) -> ConcurrencyBuilder<K> {
        ConcurrencyBuilder::new(limit)
    }
}

impl<K: Hash + ?Sized, S: BuildHasher> Concurrency<K, S> {
    /// Shorthand for [`try_acquire_n`](Self::try_acquire_n) with one permit.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire_n`](Self::try_acquire_n).
    pub fn try_acquire(&self, key: &K) -> Result<Permit, Busy> {
        self.try_acquire_n(key, 1)
    }

    /// Acquires `count` permits now, or none.
    ///
    /// # Errors
    ///
    /// If fewer are free, or other calls are waiting for the key: nobody overtakes them. If
    /// there is no room for another key.
    pub fn try_acquire_n(&self, key: &K, count: u32) -> Result<Permit, Busy> {
        self.try_call(&Call { key: self.fingerprint(key), count, limit: None })
    }

    /// The same under another limit, as a tier or a single key may have.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire_n`](Self::try_acquire_n).
    pub fn try_acquire_within(&self, key: &K, count: u32, limit: u32) -> Result<Permit, Busy> {
        self.try_call(&Call { key: self.fingerprint(key), count, limit: Some(limit) })
    }

    /// Acquires `count` permits in any case: beyond the limit, and before calls that are waiting.
    ///
    /// If there is no room for another key, the permit [counts](Permit::is_counted) for nothing.
    pub fn acquire_beyond(&self, key: &K, count: u32) -> Permit {
        let key = self.fingerprint(key);
        let shard = self.shard(key);
        match count {
            0 => Permit::uncounted(key, 0, shard.in_flight(key)),
            _ => match shard.hold_beyond(key, count) {
                Some(in_flight) => Permit::counted(shard, key, count, in_flight),
                None => Permit::uncounted(key, count, count),
            },
        }
    }

    /// How many permits of a key are held.
    pub fn in_flight(&self, key: &K) -> u32 {
        let key = self.fingerprint(key);
        self.shard(key).in_flight(key)
    }

    fn try_call(&self, call: &Call) -> Result<Permit, Busy> {
        let shard = self.shard(call.key);
        if call.count == 0 {
            return Ok(Permit::uncounted(call.key, 0, shard.in_flight(call.key)));
        }
        let in_flight = shard.try_hold(call)?;
        Ok(Permit::counted(shard, call.key, call.count, in_flight))
    }

    fn fingerprint(&self, key: &K) -> Fingerprint {
        Fingerprint::from_bits(self.hasher.hash_one(key))
    }

    fn shard(&self, key: Fingerprint) -> &Arc<Shard> {
        // Not the bits by which the map of the shard places its entries.
        &self.shards[(key.to_bits() >> 32) as usize % SHARDS]
    }
}

impl<K: ?Sized, S> Concurrency<K, S> {
    /// The limit of a key, unless a call brings its own.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.shared.limit()
    }

    /// Changes the limit. Under a lower one, holders keep their permits, and new calls fail or
    /// wait until enough are released; a waiting call whose count is above it fails when its
    /// turn comes.
    ///
    /// Once this returns, no permit is granted under the old limit.
    pub fn set_limit(&self, limit: u32) {
        self.shared.set_limit(limit);
        // Also waits for calls that may still have read the old limit.
        self.shards.iter().for_each(Shard::admit_waiting);
    }

    /// How many keys can be in flight at once.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.capacity()
    }

    /// Changes how many keys can be in flight at once. Keys beyond a lower capacity stay until
    /// their permits are released.
    pub fn set_capacity(&self, keys: usize) {
        self.shared.set_capacity(keys);
    }

    /// How many permits of all keys are held. Looks at one shard after the other: while permits
    /// come and go, the sum may be one that never was.
    #[must_use]
    pub fn total_in_flight(&self) -> u64 {
        self.shards.iter().map(|shard| shard.total_in_flight()).sum()
    }

    /// How many keys have permits in flight.
    #[must_use]
    pub fn active_keys(&self) -> usize {
        self.shared.active_keys()
    }

    /// How many calls of all keys are waiting.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shards.iter().map(|shard| shard.waiting()).sum()
    }
}

impl<K: ?Sized, S: Clone> Clone for Concurrency<K, S> {
    fn clone(&self) -> Self {
        Self {
            shards: Arc::clone(&self.shards),
            shared: Arc::clone(&self.shared),
            hasher: self.hasher.clone(),
            key: PhantomData,
        }
    }
}

impl<K: ?Sized, S> fmt::Debug for Concurrency<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Concurrency")
            .field("limit", &self.limit())
            .field("active_keys", &self.active_keys())
            .finish_non_exhaustive()
    }
}
