//! The most frequent of many keys, in bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Counts keys and keeps the most frequent ones: a Misra–Gries summary whose decrements are made
/// for half of the entries at once.
///
/// The true count of a key is between [`count`](Entry::count) and that plus [`error`](Self::error),
/// which is at most `2 · total / capacity`. A key that is not kept has a count of at most `error`.
#[derive(Clone, Debug)]
pub struct HeavyHitters<T> {
    entries: HashMap<u64, Entry<T>, BuildHasherDefault<Identity>>,
    capacity: usize,
    error: u64,
    total: u64,
}

/// A key that is kept.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    /// How often it was counted at least.
    pub count: u64,
    /// What else is known of it.
    pub value: T,
}

impl<T> HeavyHitters<T> {
    /// Keeps up to so many keys.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let entries = HashMap::with_capacity_and_hasher(capacity, Default::default());
        Self { entries, capacity: capacity.max(2), error: 0, total: 0 }
    }

    /// Counts a key, by its hash. `value` makes what is kept of a key that is new.
    pub fn add(&mut self, hash: u64, value: impl FnOnce() -> T) -> &mut T {
        self.total += 1;
        if self.entries.len() >= self.capacity && !self.entries.contains_key(&hash) {
            self.purge();
        }
        let entry = self.entries.entry(hash);
        let entry = entry.or_insert_with(|| Entry { count: 0, value: value() });
        entry.count += 1;
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

    /// The most frequent keys, at most so many.
    pub fn top(&self, most: usize) -> Vec<&Entry<T>> {
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
        self.error += median;
        self.entries.retain(|_, entry| {
            entry.count = entry.count.saturating_sub(median);
            entry.count > 0
        });
    }
}

/// Takes a hash as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_are_within_the_stated_error(
            keys in prop::collection::vec(prop_oneof![0_u64..4, 0_u64..400], 0..3000),
            capacity in 2_usize..40,
        ) {
            let mut hitters = HeavyHitters::new(capacity);
            let mut exact = HashMap::<u64, u64>::new();
            for key in &keys {
                hitters.add(*key, || *key);
                *exact.entry(*key).or_default() += 1;
            }
            prop_assert!(hitters.entries.len() <= capacity);
            prop_assert!(hitters.error() <= 2 * keys.len() as u64 / capacity as u64);
            for (key, count) in exact {
                let kept = hitters.entries.get(&key).map_or(0, |entry| entry.count);
                prop_assert!(kept <= count && count <= kept + hitters.error(), "{key}");
            }
        }
    }
}
