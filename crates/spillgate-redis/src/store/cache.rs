use std::sync::{Mutex, PoisonError};

use spillgate::Timestamp;

use crate::Name;

/// A set-associative cache by caller. A miss costs a call to Redis, never a wrong answer.
pub(super) struct Cache<V> {
    shards: Box<[Mutex<Shard<V>>]>,
}

/// An entry of the cache.
pub(super) trait Cached: Copy {
    /// Entries with the latest value are kept.
    fn until(&self) -> Timestamp;
}

type Shard<V> = Box<[Set<V>]>;

/// Callers with the same hash bits.
type Set<V> = [Option<(Name, V)>; WAYS];

const WAYS: usize = 4;

/// Enough to make lock contention rare.
const SHARDS: usize = 64;

impl<V: Cached> Cache<V> {
    /// Room for about so many callers.
    pub(super) fn new(callers: usize) -> Self {
        let sets = callers.div_ceil(SHARDS * WAYS);
        let shard = || Mutex::new(vec![[None; WAYS]; sets].into());
        Self { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// Reads, inserts, changes or removes the entry of a caller.
    pub(super) fn with<T>(&self, name: Name, act: impl FnOnce(&mut Option<V>) -> T) -> T {
        // A name is random, so any of its bits will do.
        let bits = u128::from_le_bytes(*name.as_bytes()) as u64;
        let shard = &self.shards[bits as usize % SHARDS];
        let mut sets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (bits / SHARDS as u64) as usize % sets.len().max(1);
        let Some(set) = sets.get_mut(place) else { return act(&mut None) };
        let known = set.iter().position(|kept| kept.is_some_and(|(other, _)| other == name));
        let mut value = known.and_then(|index| set[index]).map(|(_, value)| value);
        let answer = act(&mut value);
        if known.is_some() || value.is_some() {
            // Empty entries come first.
            let until = |index: &usize| set[*index].map(|(_, value)| value.until());
            let index = known.or_else(|| (0..WAYS).min_by_key(until)).unwrap_or(0);
            set[index] = value.map(|value| (name, value));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> Name {
        Name::from_bytes(u128::from(number).to_le_bytes())
    }

    /// Names that share one place.
    fn neighbours() -> impl Iterator<Item = Name> {
        (0..).map(|number| name(number * SHARDS as u64))
    }

    impl Cached for u32 {
        fn until(&self) -> Timestamp {
            Timestamp::from_secs(u64::from(*self))
        }
    }

    fn known(cache: &Cache<u32>, name: Name) -> Option<u32> {
        cache.with(name, |value| *value)
    }

    #[test]
    fn a_full_place_forgets_whom_it_needs_least_long() {
        let cache = Cache::new(1);
        let names: Vec<_> = neighbours().take(WAYS + 1).collect();
        for (until, name) in [50, 20, 30, 40].into_iter().zip(&names[..WAYS]) {
            cache.with(*name, |value| *value = Some(until));
        }
        cache.with(names[WAYS], |value| *value = Some(10));
        let left: Vec<_> = names.iter().map(|name| known(&cache, *name)).collect();
        assert_eq!(left, [Some(50), None, Some(30), Some(40), Some(10)]);
        cache.with(names[1], |value| *value = Some(60));
        let left: Vec<_> = names.iter().map(|name| known(&cache, *name)).collect();
        assert_eq!(left, [Some(50), Some(60), Some(30), Some(40), None]);
    }

    #[test]
    fn what_is_taken_away_is_gone_and_others_stay() {
        let cache = Cache::new(1);
        let names: Vec<_> = neighbours().take(3).collect();
        for name in &names {
            cache.with(*name, |value| *value = Some(7));
        }
        cache.with(names[1], |value| *value = None);
        let left: Vec<_> = names.iter().map(|name| known(&cache, *name)).collect();
        assert_eq!(left, [Some(7), None, Some(7)]);
    }
}
