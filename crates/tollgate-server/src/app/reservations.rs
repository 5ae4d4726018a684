use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate::Timestamp;
use tollgate_policy::Passage;

/// Reservations that are not settled yet.
///
/// Each is settled at most once, since settling takes it out. One that expires, or is
/// forgotten to make room, is never settled: what it reserved stays spent.
#[derive(Debug)]
pub(crate) struct Reservations {
    most: AtomicUsize,
    table: Mutex<Table>,
}

/// Something that was spent in advance.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) passage: Passage<'static>,
    pub(crate) cost: u64,
    pub(crate) expires: Timestamp,
}

#[derive(Debug, Default)]
struct Table {
    pending: HashMap<u128, Pending>,
    /// In the order in which they came; some may be settled.
    order: VecDeque<u128>,
}

impl Reservations {
    /// Makes room for so many at once.
    pub(super) fn set_most(&self, most: usize) {
        // Relaxed: whoever adds the next may still go by the old number.
        self.most.store(most.max(1), Ordering::Relaxed);
    }

    /// Remembers something under an id that nobody can guess.
    pub(crate) fn add(&self, id: u128, pending: Pending, now: Timestamp) {
        let mut table = self.lock();
        table.make_room(self.most.load(Ordering::Relaxed), now);
        table.order.push_back(id);
        table.pending.insert(id, pending);
    }

    /// What is to be settled; `None` if there is nothing of that id any more.
    pub(crate) fn take(&self, id: u128, now: Timestamp) -> Option<Pending> {
        self.lock().pending.remove(&id).filter(|pending| now < pending.expires)
    }

    /// How many there are, expired ones among them.
    pub(super) fn len(&self) -> usize {
        self.lock().pending.len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Forgets the oldest: those that are settled or expired, and more if there are too
    /// many.
    fn make_room(&mut self, most: usize, now: Timestamp) {
        while let Some(id) = self.order.front() {
            let expires = self.pending.get(id).map(|pending| pending.expires);
            let is_over = expires.is_none_or(|expires| expires <= now);
            if !is_over && self.pending.len() < most {
                break;
            }
            self.pending.remove(id);
            self.order.pop_front();
        }
        // One that stays long would keep all that came later in line.
        if self.order.len() > 2 * most {
            self.order.retain(|id| self.pending.contains_key(id));
        }
    }
}

impl Default for Reservations {
    fn default() -> Self {
        Self { most: AtomicUsize::new(100_000), table: Mutex::default() }
    }
}
