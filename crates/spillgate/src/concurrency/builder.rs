use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::sync::Arc;

use super::Concurrency;
use super::shard::{SHARDS, Shard, Shared};
use crate::KeyedState;

/// Builds a [`Concurrency`].
///
/// ```
/// use spillgate::Concurrency;
///
/// let uploads = Concurrency::<str>::builder(50).capacity(10_000).queue(200).build();
/// assert!(uploads.try_acquire("alice").is_ok());
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ConcurrencyBuilder<K: ?Sized, S = KeyedState> {
    limit: u32,
    capacity: usize,
    queue: usize,
    hasher: S,
    key: PhantomData<fn(&K)>,
}

/// At most 5 MB.
const DEFAULT_CAPACITY: usize = 100_000;

/// Long enough for a burst, and short enough that the last one is worth waiting for.
const DEFAULT_QUEUE: usize = 1_000;

impl<K: ?Sized> ConcurrencyBuilder<K> {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            limit,
            capacity: DEFAULT_CAPACITY,
            queue: DEFAULT_QUEUE,
            hasher: KeyedState::new(),
            key: PhantomData,
        }
    }
}

impl<K: ?Sized, S> ConcurrencyBuilder<K, S> {
    /// Sets how many keys can be in flight at once: 100,000 by default. A new key beyond that is
    /// refused with [`Busy::is_full`](super::Busy::is_full). With 0, every key is.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// Sets how many calls can wait for one key: 1,000 by default. One more fails at once. With
    /// 0, none waits. Each takes about 100 bytes.
    pub fn queue(mut self, calls: usize) -> Self {
        self.queue = calls;
        self
    }

    /// Sets the hasher. Keys are distinguished by their hash alone, so it must be keyed with a
    /// secret unless all keys can be trusted.
    pub fn hasher<T: BuildHasher>(self, hasher: T) -> ConcurrencyBuilder<K, T> {
        let Self { limit, capacity, queue, key, .. } = self;
        ConcurrencyBuilder { limit, capacity, queue, hasher, key }
    }

    /// Builds it. Memory is allocated as keys come.
    #[must_use]
    pub fn build(self) -> Concurrency<K, S> {
        let shared = Arc::new(Shared::new(self.limit, self.capacity, self.queue));
        let shards = (0..SHARDS).map(|_| Arc::new(Shard::new(Arc::clone(&shared)))).collect();
        Concurrency { shards, shared, hasher: self.hasher, key: PhantomData }
    }
}
