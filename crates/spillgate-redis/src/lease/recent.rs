use std::time::Duration;

use spillgate::Timestamp;

/// How often callers without a lease have called lately: a fixed number of the most recent.
///
/// A slice costs a call to take, perhaps one to give back, and room in the table. So the first
/// calls of a caller ask Redis, as under a strict limit, and a lease begins once more follow soon.
#[derive(Debug)]
pub(super) struct Recent(Box<[Set]>);

/// Callers with the same hash bits, most recent first.
type Set = [Seen; WAYS];

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    place: u64,
    /// When counting began, by this node's clock.
    since: Timestamp,
    /// Calls since then.
    calls: u32,
    /// Reservations for which a call must still ask Redis.
    reserved: u32,
}

const WAYS: usize = 4;

/// So many calls must come in this time for a lease to pay.
const TIME: Duration = Duration::from_millis(250);
const CALLS: u32 = 4;

/// The most reservations that are remembered.
const RESERVED: u32 = 1024;

impl Recent {
    /// Room for about so many callers.
    pub(super) fn new(callers: usize) -> Self {
        Self(vec![Set::default(); callers.div_ceil(WAYS).max(1)].into())
    }

    /// Counts a call that needs Redis. Returns whether a lease pays.
    pub(super) fn pays(&mut self, place: u64, local: Timestamp) -> bool {
        let seen = self.seen(place);
        if seen.calls == 0 || local.since(seen.since) >= TIME {
            (seen.since, seen.calls) = (local, 0);
        }
        seen.calls = seen.calls.saturating_add(1);
        seen.calls >= CALLS
    }

    /// Notes that a call was a reservation.
    pub(super) fn reserve(&mut self, place: u64) {
        let seen = self.seen(place);
        seen.reserved = (seen.reserved + 1).min(RESERVED);
    }

    /// True once per reservation.
    pub(super) fn is_reserving(&mut self, place: u64) -> bool {
        let seen = self.seen(place);
        let is_reserving = seen.reserved > 0;
        seen.reserved = seen.reserved.saturating_sub(1);
        is_reserving
    }

    /// The entry of a caller. The least recent one is evicted for it.
    fn seen(&mut self, place: u64) -> &mut Seen {
        let index = (place >> 16) as usize % self.0.len();
        let set = &mut self.0[index];
        let known = set.iter().position(|seen| seen.place == place);
        set[..=known.unwrap_or(WAYS - 1)].rotate_right(1);
        if known.is_none() {
            set[0] = Seen { place, ..Seen::default() };
        }
        &mut set[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_secs(1000);

    #[test]
    fn a_lease_pays_once_some_calls_come_soon_after_one_another() {
        let mut recent = Recent::new(100);
        let mut pays = |place, millis| recent.pays(place, START + Duration::from_millis(millis));
        assert_eq!([0, 80, 160, 240].map(|at| pays(1, at)), [false, false, false, true]);
        assert!(pays(1, 249));
        assert_eq!([0, 90, 180, 270].map(|at| pays(2, at)), [false; 4]);
    }

    #[test]
    fn a_flood_of_others_does_not_keep_a_busy_caller_from_its_lease() {
        let mut recent = Recent::new(4096);
        // A thousand others for each call of the busy one.
        let mut calls = 0..;
        let mut pays = false;
        for _ in 0..CALLS {
            for other in calls.by_ref().take(1000) {
                let place = (other + 1_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                assert!(!recent.pays(place, START));
            }
            pays = recent.pays(7, START);
        }
        assert!(pays);
    }

    #[test]
    fn as_many_calls_ask_as_were_reservations() {
        let mut recent = Recent::new(100);
        recent.reserve(1);
        recent.reserve(1);
        assert_eq!(
            [1, 1, 1, 2].map(|place| recent.is_reserving(place)),
            [true, true, false, false]
        );
    }
}
