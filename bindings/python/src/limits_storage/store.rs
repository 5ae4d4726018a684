use std::hash::{BuildHasher, Hash, RandomState};

use indexmap::{Equivalent, IndexMap};

use super::record::{Counter, Log, Record, Sliding};

/// Weight of a record; that of a logged time is 1. About the ratio of their sizes.
const RECORD_WEIGHT: usize = 8;

/// Records that each call looks at, to forget them if they are expired.
const SWEPT_PER_CALL: usize = 2;

/// Records that are compared to evict the one with the least spent.
const EVICTION_SAMPLE: usize = 8;

/// What a record counts. The same key may be used by several strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Space {
    Counter,
    Log,
    /// With the bits of its window, since windows of different lengths share nothing.
    Sliding(u64),
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) space: Space,
    pub(super) name: Box<[u8]>,
}

/// Hashed like [`Key`].
#[derive(Clone, Copy, Hash)]
struct KeyRef<'k> {
    space: Space,
    name: &'k [u8],
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.space == key.space && *self.name == *key.name
    }
}

/// Counters by key, with a bound on their number.
///
/// Expired ones are forgotten by and by: each call looks at two others. If all are in use and there
/// is no room, the one that has spent least of a few is evicted, and its key starts afresh.
pub(super) struct Store {
    pub(super) records: IndexMap<Key, Record, RandomState>,
    capacity: usize,
    /// Logged times of all records.
    runs: usize,
    /// The record that the next call looks at.
    cursor: usize,
    random: u64,
}

impl Store {
    pub(super) fn new(capacity: usize) -> Self {
        let hasher = RandomState::new();
        let random = hasher.hash_one(capacity) | 1;
        let records = IndexMap::with_hasher(hasher);
        Self { records, capacity, runs: 0, cursor: 0, random }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn incr(&mut self, name: &[u8], expiry: f64, amount: u64, now: f64) -> u64 {
        let fresh = || Record::Counter(Counter { count: 0, expires: now });
        self.change(Space::Counter, name, now, fresh, |record| match record {
            Record::Counter(counter) => counter.add(expiry, amount, now),
            _ => 0,
        })
    }

    /// Count and end of a fixed window.
    pub(super) fn counter(&self, name: &[u8], now: f64) -> Option<&Counter> {
        match self.records.get(&KeyRef { space: Space::Counter, name }) {
            Some(Record::Counter(counter)) if counter.expires > now => Some(counter),
            _ => None,
        }
    }

    pub(super) fn acquire_entry(
        &mut self,
        name: &[u8],
        limit: u64,
        expiry: f64,
        amount: u64,
        now: f64,
    ) -> bool {
        let fresh = || Record::Log(Box::new(Log::new(expiry)));
        amount <= limit
            && self.change(Space::Log, name, now, fresh, |record| match record {
                Record::Log(log) => log.acquire(limit, expiry, amount, now),
                _ => false,
            })
    }

    pub(super) fn moving_window(&self, name: &[u8], expiry: f64, now: f64) -> (f64, u64) {
        match self.records.get(&KeyRef { space: Space::Log, name }) {
            Some(Record::Log(log)) => log.window(expiry, now),
            _ => (now, 0),
        }
    }

    pub(super) fn acquire_sliding(
        &mut self,
        name: &[u8],
        limit: u64,
        expiry: f64,
        amount: u64,
        now: f64,
    ) -> bool {
        let fresh = || Record::Sliding(Sliding::new(expiry, now));
        amount <= limit
            && self.change(
                Space::Sliding(expiry.to_bits()),
                name,
                now,
                fresh,
                |record| match record {
                    Record::Sliding(sliding) => sliding.acquire(limit, amount, now),
                    _ => false,
                },
            )
    }

    pub(super) fn sliding_window(&self, name: &[u8], expiry: f64, now: f64) -> Sliding {
        match self.records.get(&KeyRef { space: Space::Sliding(expiry.to_bits()), name }) {
            Some(Record::Sliding(sliding)) => sliding.at(now),
            _ => Sliding::new(expiry, now),
        }
    }

    pub(super) fn clear(&mut self, name: &[u8], space: Space) {
        if let Some(removed) = self.records.swap_remove(&KeyRef { space, name }) {
            self.runs -= removed.runs();
        }
    }

    /// Forgets everything; returns how many records there were.
    pub(super) fn reset(&mut self) -> usize {
        let forgotten = self.records.len();
        self.records = IndexMap::with_hasher(self.records.hasher().clone());
        (self.runs, self.cursor) = (0, 0);
        forgotten
    }

    pub(super) fn restore(&mut self, key: Key, record: Record, now: f64) {
        self.runs += record.runs();
        let (index, replaced) = self.records.insert_full(key, record);
        self.runs -= replaced.map_or(0, |replaced| replaced.runs());
        self.make_room(index, now);
    }

    /// Applies a change to a record, which is made if it is not there.
    fn change<R>(
        &mut self,
        space: Space,
        name: &[u8],
        now: f64,
        fresh: impl FnOnce() -> Record,
        change: impl FnOnce(&mut Record) -> R,
    ) -> R {
        self.sweep(now);
        let found = self.records.get_full_mut(&KeyRef { space, name });
        let (index, result, before, after) = if let Some((index, _, record)) = found {
            let before = record.runs();
            (index, change(record), before, record.runs())
        } else {
            let mut record = fresh();
            let result = change(&mut record);
            let runs = record.runs();
            let (index, _) = self.records.insert_full(Key { space, name: name.into() }, record);
            (index, result, 0, runs)
        };
        self.runs = self.runs - before + after;
        self.make_room(index, now);
        result
    }

    /// Looks at a few records, and forgets those that are expired.
    fn sweep(&mut self, now: f64) {
        for _ in 0..SWEPT_PER_CALL {
            match self.records.get_index(self.cursor) {
                Some((_, record)) if record.is_expired(now) => self.remove(self.cursor),
                Some(_) => self.cursor += 1,
                None => {
                    self.cursor = 0;
                    self.shrink();
                    return;
                }
            }
        }
    }

    /// Gives memory back once a full round has left it mostly empty.
    fn shrink(&mut self) {
        if self.records.capacity() > 64 + 4 * self.records.len() {
            self.records.shrink_to(2 * self.records.len());
        }
    }

    /// Evicts records until the rest fits; never the one at index `keep`, which is in use.
    fn make_room(&mut self, mut keep: usize, now: f64) {
        while self.records.len() > 1
            && self.records.len() * RECORD_WEIGHT + self.runs > self.capacity * RECORD_WEIGHT
        {
            let victim = self.least_spent(keep, now);
            self.remove(victim);
            // The last record has moved to the gap.
            if keep == self.records.len() {
                keep = victim;
            }
        }
    }

    /// Of a few records, the one whose loss matters least: expired, or with the least spent.
    fn least_spent(&mut self, keep: usize, now: f64) -> usize {
        let mut least = (u64::MAX, f64::INFINITY, if keep == 0 { 1 } else { 0 });
        for _ in 0..EVICTION_SAMPLE {
            let index = self.random_index();
            let Some((_, record)) = self.records.get_index(index) else { continue };
            let spent = if record.is_expired(now) { 0 } else { record.spent() };
            let candidate = (spent, record.expires(), index);
            if index != keep && candidate < least {
                least = candidate;
            }
        }
        least.2
    }

    fn remove(&mut self, index: usize) {
        if let Some((_, record)) = self.records.swap_remove_index(index) {
            self.runs -= record.runs();
        }
    }

    /// By xorshift, from a secret seed.
    fn random_index(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % self.records.len() as u64) as usize
    }
}
