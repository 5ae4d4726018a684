use std::collections::HashMap;
use std::hash::BuildHasher;

use spillgate::KeyedState;

use super::ValuePattern;

/// Limits by the entries that they name, so that finding some among thousands costs as much
/// as among ten.
///
/// They are found by a hash of their keys, and of those values that they name exactly. For
/// that, one has to know of which keys that are: mostly, limits with the same keys name the
/// values of the same ones.
#[derive(Default)]
pub(super) struct Named {
    hasher: KeyedState,
    /// By the hash of all keys, each set of keys whose values are named exactly: a bit for
    /// each, in the order of the keys.
    exact: HashMap<u64, Vec<u64>, KeyedState>,
    /// The places of limits, by the hash of their keys and exact values.
    limits: HashMap<u64, Vec<usize>, KeyedState>,
}

/// More entries than that no limit can name.
pub(crate) const MOST_ENTRIES: usize = u64::BITS as usize;

impl Named {
    pub(super) fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// Adds a limit for entries, in the order of their keys.
    pub(super) fn insert(&mut self, entries: &[(Box<str>, ValuePattern)], place: usize) {
        let keys = self.hash_keys(entries.iter().map(|(key, _)| &**key));
        let values = || entries.iter().map(|(_, value)| value.exact());
        let bits = values().enumerate().filter(|(_, value)| value.is_some());
        let exact = bits.fold(0, |exact, (index, _)| exact | 1 << index);
        let known = self.exact.entry(keys).or_default();
        if !known.contains(&exact) {
            known.push(exact);
        }
        let hash = self.hash_values(keys, exact, values().flatten());
        self.limits.entry(hash).or_default().push(place);
    }

    /// Visits all limits for entries, which must be in the order of their keys, and perhaps
    /// some that are not for them.
    pub(super) fn for_each(&self, entries: &[(&str, &str)], visit: &mut impl FnMut(usize)) {
        if entries.len() > MOST_ENTRIES {
            return;
        }
        let keys = self.hash_keys(entries.iter().map(|(key, _)| *key));
        for exact in self.exact.get(&keys).into_iter().flatten() {
            let values = entries.iter().enumerate().filter(|(index, _)| exact & (1 << index) != 0);
            let hash = self.hash_values(keys, *exact, values.map(|(_, (_, value))| *value));
            self.limits.get(&hash).into_iter().flatten().for_each(|place| visit(*place));
        }
    }

    fn hash_keys<'k>(&self, keys: impl Iterator<Item = &'k str>) -> u64 {
        keys.fold(0, |hash, key| self.hasher.hash_one((hash, key)))
    }

    fn hash_values<'v>(&self, keys: u64, exact: u64, values: impl Iterator<Item = &'v str>) -> u64 {
        let start = self.hasher.hash_one((keys, exact));
        values.fold(start, |hash, value| self.hasher.hash_one((hash, value)))
    }
}
