//! The most frequent of many keys, in bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Counts keys and keeps the most frequent ones: a Misra–Gries summary whose decrements are made
/// for half of the entries at once.
///
/// The true count of a key is between [`count`](HeavyHitter::count) and that plus
/// [`error`](Self::error), which is at most `2 · total / capacity`. A key that is not kept has a
/// count of at most `error`. Counts end at [`u64::MAX`].
///
/// Keys are told apart by their hash: use one whose collisions nobody can choose, such as
/// [`KeyedState`](crate::KeyedState).
///
/// ```
/// use std::hash::BuildHasher;
/// use spillgate::{HeavyHitters, KeyedState};
///
/// let hasher = KeyedState::new();
/// let mut denied = HeavyHitters::new(1024);
/// for caller in ["203.0.113.7", "203.0.113.7", "198.51.100.1"] {
///     denied.add(hasher.hash_one(caller), || caller.to_owned());
/// }
/// let top = denied.top(1);
/// assert_eq!((top[0].value.as_str(), top[0].count), ("203.0.113.7", 2));
/// assert_eq!(denied.error(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct HeavyHitters<T> {
    entries: HashMap<u64, HeavyHitter<T>, HashIsKey>,
    capacity: usize,
    error: u64,
    total: u64,
}

/// A key that is kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeavyHitter<T> {
    /// How often it was counted at least.
    pub count: u64,
    /// What else is known of it.
    pub value: T,
}

impl<T> HeavyHitters<T> {
    /// Keeps up to so many keys.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { entries: HashMap::default(), capacity: capacity.max(2), error: 0, total: 0 }
    }

    /// Counts a key once, by its hash. `value` makes what is kept of a key that is new.
    pub fn add(&mut self, hash: u64, value: impl FnOnce() -> T) -> &mut T {
        self.add_n(hash, 1, value)
    }

    /// Counts a key so often, by its hash. `value` makes what is kept of a key that is new.
    pub fn add_n(&mut self, hash: u64, count: u64, value: impl FnOnce() -> T) -> &mut T {
        self.total = self.total.saturating_add(count);
        if self.entries.len() >= self.capacity && !self.entries.contains_key(&hash) {
            self.purge();
        }
        let entry = self.entries.entry(hash);
        let entry = entry.or_insert_with(|| HeavyHitter { count: 0, value: value() });
        entry.count = entry.count.saturating_add(count);
        &mut entry.value
    }

    /// What is kept of a key.
    #[inline]
    pub fn get_mut(&mut self, hash: u64) -> Option<&mut T> {
        self.entries.get_mut(&hash).map(|entry| &mut entry.value)
    }

    /// By how much counts may be too low.
    #[must_use]
    pub fn error(&self) -> u64 {
        self.error
    }

    /// All that was counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many keys are kept at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The keys that are kept, by their hashes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &HeavyHitter<T>)> {
        self.entries.iter().map(|(hash, entry)| (*hash, entry))
    }

    /// The most frequent keys, at most so many.
    #[must_use]
    pub fn top(&self, most: usize) -> Vec<&HeavyHitter<T>> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_unstable_by_key(|(hash, entry)| (std::cmp::Reverse(entry.count), **hash));
        all.into_iter().take(most).map(|(_, entry)| entry).collect()
    }

    /// All keys that are kept.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.values_mut().map(|entry| &mut entry.value)
    }

    /// Subtracts the median from all, and drops those of which nothing is left.
    fn purge(&mut self) {
        let mut counts: Vec<u64> = self.entries.values().map(|entry| entry.count).collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        let median = *median;
        self.error = self.error.saturating_add(median);
        self.entries.retain(|_, entry| {
            entry.count = entry.count.saturating_sub(median);
            entry.count > 0
        });
    }
}

/// For maps whose keys are hashes already.
pub type HashIsKey = BuildHasherDefault<SameHash>;

/// Takes a hash as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct SameHash(u64);

impl Hasher for SameHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
