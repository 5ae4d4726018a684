use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spillgate::Timestamp;
use spillgate_policy::Receipt;

/// Unsettled reservations that are not in Redis. Settling removes one. What an expired or evicted
/// one reserved stays spent.
#[derive(Debug)]
pub(super) struct Reservations {
    most: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) receipt: Receipt,
    pub(super) expires: Timestamp,
}

#[derive(Debug, Default)]
struct Table {
    pending: HashMap<u128, Reservation>,
    by_expiry: BTreeSet<(Timestamp, u128)>,
}

impl Reservations {
    pub(super) fn set_most(&self, most: usize) {
        // Relaxed: the next one may still go by the old number.
        self.most.store(most.max(1), Ordering::Relaxed);
    }

    /// Remembers something under an id that nobody can guess.
    pub(super) fn add(&self, id: u128, pending: Reservation, now: Timestamp) {
        let mut table = self.lock();
        table.make_room(self.most.load(Ordering::Relaxed), now);
        table.by_expiry.insert((pending.expires, id));
        table.pending.insert(id, pending);
    }

    /// What is to be settled; `None` if there is nothing of that id any more.
    pub(super) fn take(&self, id: u128, now: Timestamp) -> Option<Reservation> {
        let mut table = self.lock();
        let pending = table.pending.remove(&id)?;
        table.by_expiry.remove(&(pending.expires, id));
        Some(pending).filter(|pending| now < pending.expires)
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
    /// Evicts expired ones, and then those that would expire next.
    fn make_room(&mut self, most: usize, now: Timestamp) {
        while let Some((expires, id)) = self.by_expiry.first().copied() {
            if now < expires && self.pending.len() < most {
                break;
            }
            self.pending.remove(&id);
            self.by_expiry.remove(&(expires, id));
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

    use spillgate_policy::{Gate, Limit, LimitCheck, Limits, Policy};

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    struct Desk(Gate, Reservations);

    impl Desk {
        fn new(most: usize) -> Self {
            let policy = Policy::builder().limit(Limit::new("api", "1/h burst 1000")).build();
            let reservations = Reservations::default();
            reservations.set_most(most);
            Self(Gate::new(policy.unwrap()).unwrap(), reservations)
        }

        async fn add(&self, id: u128, now: Timestamp, seconds: u64) {
            let check = LimitCheck { limit: "api", values: &["user:1"], cost: 1 };
            let receipt = self.0.decide(&Limits(&[check])).await.unwrap().receipt().unwrap();
            let expires = now + Duration::from_secs(seconds);
            self.1.add(id, Reservation { receipt, expires }, now);
        }

        fn has(&self, id: u128, now: Timestamp) -> bool {
            self.1.take(id, now).is_some()
        }
    }

    #[tokio::test]
    async fn a_reservation_is_taken_once_and_not_after_it_has_expired() {
        let desk = Desk::new(100);
        desk.add(1, NOW, 60).await;
        desk.add(2, NOW, 60).await;
        let just_before = NOW + Duration::from_nanos(59_999_999_999);
        assert!(desk.has(1, just_before));
        assert!(!desk.has(1, just_before));
        assert!(!desk.has(2, NOW + Duration::from_secs(60)));
        assert!(!desk.has(2, NOW), "it was forgotten");
    }

    #[tokio::test]
    async fn nothing_is_left_of_those_that_are_settled() {
        let desk = Desk::new(4);
        desk.add(0, NOW, 60).await;
        for id in 1..100 {
            desk.add(id, NOW, 60).await;
            assert!(desk.has(id, NOW));
            assert_eq!(desk.1.lock().by_expiry.len(), 1);
        }
        assert!(desk.has(0, NOW), "it was not crowded out");
    }

    #[tokio::test]
    async fn expired_ones_make_room_before_older_ones_that_live() {
        let desk = Desk::new(3);
        desk.add(1, NOW, 3600).await;
        desk.add(2, NOW, 10).await;
        desk.add(3, NOW, 600).await;
        let later = NOW + Duration::from_secs(10);
        desk.add(4, later, 60).await;
        assert_eq!(desk.1.len(), 3);
        assert!(!desk.has(2, later), "it had expired");
        // Of those that live, the one goes that would go next.
        desk.add(5, later, 3600).await;
        assert!(!desk.has(4, later));
        assert!(desk.has(1, later) && desk.has(3, later) && desk.has(5, later));
    }
}
