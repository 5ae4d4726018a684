use std::sync::{Arc, OnceLock};

use spillgate::algorithm::Word;
use spillgate::{Clock, Fingerprint, KeyedState, Limiter, Saved, Table, Timestamp};

use super::call_quota::CLASSES;
use super::{LimitSpec, Memory, Usage};
use crate::{Error, Key};

/// The tables of a limit whose quota comes with each call: one per class of quotas, with the
/// whole capacity of the limit each.
///
/// What is kept of a key is the time at which its bucket is full again, whatever the quota. A key
/// is decided in the class of the call's quota, after its word there was raised to the latest
/// that any class has of it: under another quota it owes what it owed before. Two calls at the
/// same instant for one key, under quotas of different classes, may miss each other's cost.
///
/// A table is built when its class is first used, since it would take memory otherwise.
pub(super) struct Classes<C> {
    memory: Memory<C>,
    spec: LimitSpec,
    tables: [OnceLock<Arc<Limiter<Key, C>>>; CLASSES],
    /// Built with the limit, so that a capacity too large is an error then. The class that is used
    /// first takes it.
    first: OnceLock<usize>,
    spare: Arc<Limiter<Key, C>>,
}

impl<C: Clock + Clone> Classes<C> {
    pub(super) fn new(memory: Memory<C>, spec: &LimitSpec, spare: Arc<Limiter<Key, C>>) -> Self {
        Self {
            memory,
            spec: spec.clone(),
            tables: Default::default(),
            first: OnceLock::new(),
            spare,
        }
    }

    /// The same with another capacity, and what was spent.
    pub(super) fn rebuild(
        &self,
        spec: &LimitSpec,
        spare: Arc<Limiter<Key, C>>,
    ) -> Result<Self, Error> {
        let new = Self::new(self.memory.clone(), spec, spare);
        for (class, old) in self.built() {
            let limiter = new.memory.limiter(spec, Some(old))?;
            let _ = new.first.set(class);
            let _ = new.tables[class].set(limiter);
        }
        Ok(new)
    }

    fn get(&self, class: usize) -> &Limiter<Key, C> {
        self.tables[class].get_or_init(|| {
            if *self.first.get_or_init(|| class) == class {
                return Arc::clone(&self.spare);
            }
            // Without memory for a table of its own, the class shares one.
            self.memory.limiter(&self.spec, None).unwrap_or_else(|_| Arc::clone(&self.spare))
        })
    }

    /// The classes in use, with their tables; each table once.
    fn built(&self) -> impl Iterator<Item = (usize, &Arc<Limiter<Key, C>>)> {
        let tables = self.tables.iter().enumerate();
        let built = tables.filter_map(|(class, table)| Some((class, table.get()?)));
        built.filter(|(class, table)| {
            self.first.get() == Some(class) || !Arc::ptr_eq(table, &self.spare)
        })
    }

    /// The tables of the classes in use.
    pub(super) fn each(&self) -> impl Iterator<Item = &Limiter<Key, C>> {
        self.built().map(|(_, table)| &**table)
    }

    /// The table of a class, in which the key owes what it owes in any.
    #[inline]
    pub(super) fn table_for(&self, class: u8, key: &Key, now: Timestamp) -> &Limiter<Key, C> {
        let class = usize::from(class);
        let own = self.get(class);
        let others = || self.tables.iter().enumerate().filter(|(other, _)| *other != class);
        if others().any(|(_, table)| table.get().is_some()) {
            let client = own.fingerprint(key);
            let latest =
                others().filter_map(|(_, table)| Some(word(table.get()?.table(), client, now)));
            let latest = latest.max().unwrap_or(0);
            if latest > word(own.table(), client, now).max(now.as_nanos()) {
                own.table().raise_at(client, |_| Word::from_bits(latest), now);
            }
        }
        own
    }

    /// The table in which a key owes most.
    pub(super) fn table_of(&self, key: &Key, now: Timestamp) -> &Limiter<Key, C> {
        let client = self.spare.fingerprint(key);
        let most = self.each().max_by_key(|limiter| word(limiter.table(), client, now));
        most.unwrap_or(&self.spare)
    }

    pub(super) fn save(&self) -> Saved {
        let mut saved = self.spare.save();
        let Some(empty) = saved.tables.first_mut() else { return saved };
        empty.callers.clear();
        let mut tables = vec![empty.clone(); CLASSES];
        for (class, limiter) in self.built() {
            tables[class].callers =
                limiter.save().tables.into_iter().flat_map(|it| it.callers).collect();
        }
        saved.tables = tables;
        saved
    }

    /// Puts back what was saved. What was saved before there were classes goes to the longest.
    pub(super) fn restore(&self, saved: &Saved, then: Timestamp) {
        let is_classed = saved.tables.len() == CLASSES;
        for (place, table) in saved.tables.iter().enumerate() {
            if !table.callers.is_empty() {
                let class = if is_classed { place } else { CLASSES - 1 };
                let mut alone = Saved::default();
                alone.tables.push(table.clone());
                self.get(class).restore(&alone, then);
            }
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.each().fold(Usage::default(), |sum, limiter| Usage {
            callers: sum.callers + limiter.active_callers() as u64,
            evictions: sum.evictions + limiter.evictions(),
            ..sum
        })
    }
}

/// The time at which the bucket of a client is full again, in nanoseconds.
fn word(table: &Table<KeyedState>, client: Fingerprint, now: Timestamp) -> u64 {
    table.peek_at(client, 0, now).word().to_bits()
}
