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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate_policy::{Gate, Limit, LimitCheck, Policy};

    use super::*;

    async fn pending(gate: &Gate, expires: Timestamp) -> Pending {
        let check = LimitCheck { limit: "api", values: &["user:1"], cost: 1 };
        let passage = gate.check_limits(&[check]).await.unwrap();
        Pending { passage, cost: 1, expires }
    }

    fn gate() -> Gate {
        Gate::new(Policy::builder().limit(Limit::new("api", "1/h burst 1000")).build().unwrap())
            .unwrap()
    }

    #[tokio::test]
    async fn a_reservation_is_taken_once_and_not_after_it_has_expired() {
        let (gate, reservations) = (gate(), Reservations::default());
        let now = Timestamp::from_secs(1_700_000_000);
        let expires = now + Duration::from_secs(60);
        reservations.add(1, pending(&gate, expires).await, now);
        reservations.add(2, pending(&gate, expires).await, now);
        let just_before = now + Duration::from_nanos(59_999_999_999);
        assert!(reservations.take(1, just_before).is_some());
        assert!(reservations.take(1, just_before).is_none());
        assert!(reservations.take(2, expires).is_none());
        assert!(reservations.take(2, now).is_none(), "it was forgotten");
    }

    #[tokio::test]
    async fn memory_is_bounded_also_if_one_stays_and_all_others_are_settled() {
        let (gate, reservations) = (gate(), Reservations::default());
        reservations.set_most(4);
        let now = Timestamp::from_secs(1_700_000_000);
        let expires = now + Duration::from_secs(60);
        reservations.add(0, pending(&gate, expires).await, now);
        for id in 1..100 {
            reservations.add(id, pending(&gate, expires).await, now);
            assert!(reservations.take(id, now).is_some());
        }
        let length = reservations.lock().order.len();
        assert!(length <= 9, "{length} in line");
        assert!(reservations.take(0, now).is_some(), "it was not crowded out");
    }

    #[tokio::test]
    async fn expired_ones_make_room_before_others_do() {
        let (gate, reservations) = (gate(), Reservations::default());
        reservations.set_most(2);
        let now = Timestamp::from_secs(1_700_000_000);
        let later = now + Duration::from_secs(60);
        reservations.add(1, pending(&gate, later).await, now);
        reservations.add(2, pending(&gate, later).await, now);
        reservations.add(3, pending(&gate, later + Duration::from_secs(60)).await, later);
        assert_eq!(reservations.len(), 1);
        assert!(reservations.take(3, later).is_some());
    }
}
