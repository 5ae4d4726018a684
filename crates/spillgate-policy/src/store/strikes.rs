//! The offences of callers, in memory.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use spillgate::Timestamp;

use super::{BanRule, BanStart, BanState, StrikeCall};

/// A caller is looked for in one of so many sets: a power of two, so that a few bits name one.
const SETS: usize = 1 << 13;

/// So many callers have room in a set. With [`SETS`] that is 131,072 callers in about 11 MB.
const WAYS: usize = 16;

/// What callers have done, by the fingerprints of limit and caller. Bounded: where there is no room,
/// those with the fewest bans and strikes are forgotten.
#[derive(Default)]
pub(super) struct Strikes {
    /// Empty until the first offence, since most policies ban nobody.
    sets: OnceLock<Box<[Mutex<Vec<Offender>>]>>,
}

struct Offender {
    fingerprint: u64,
    state: BanState,
    forgotten_at: Timestamp,
}

impl Strikes {
    /// Counts offences. Returns the ban that they start, or find in force.
    pub(super) fn strike(
        &self,
        fingerprint: u64,
        rule: &BanRule,
        call: StrikeCall,
        now: Timestamp,
    ) -> Option<BanStart> {
        let mut set = self.set(fingerprint);
        let known = set.iter().position(|offender| offender.fingerprint == fingerprint);
        let place = known.unwrap_or_else(|| make_room(&mut set, fingerprint, now));
        let offender = &mut set[place];
        let start = rule.offences(&mut offender.state, call.count, now);
        offender.forgotten_at = rule.forgotten_at(&offender.state);
        start
    }

    /// Forgets a caller.
    pub(super) fn forgive(&self, fingerprint: u64) {
        if self.sets.get().is_some() {
            self.set(fingerprint).retain(|offender| offender.fingerprint != fingerprint);
        }
    }

    fn set(&self, fingerprint: u64) -> MutexGuard<'_, Vec<Offender>> {
        let sets = self.sets.get_or_init(|| (0..SETS).map(|_| Mutex::default()).collect());
        let set = &sets[fingerprint as usize % SETS];
        set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a caller to a set, and returns its place.
fn make_room(set: &mut Vec<Offender>, fingerprint: u64, now: Timestamp) -> usize {
    let newcomer =
        Offender { fingerprint, state: BanState::default(), forgotten_at: Timestamp::ZERO };
    if set.len() >= WAYS {
        set.retain(|offender| offender.forgotten_at > now);
    }
    if set.len() < WAYS {
        set.push(newcomer);
        return set.len() - 1;
    }
    let weight = |offender: &Offender| {
        (offender.state.bans(), offender.state.strikes(), offender.forgotten_at)
    };
    let lightest = set.iter().enumerate().min_by_key(|(_, offender)| weight(offender));
    let place = lightest.map_or(0, |(place, _)| place);
    set[place] = newcomer;
    place
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Counts an offence.
    fn strike(strikes: &Strikes, caller: u64, rule: &BanRule, now: Timestamp) -> Option<BanStart> {
        strikes.strike(caller, rule, StrikeCall::new(1), now)
    }

    /// Callers of one set.
    fn crowd(size: usize) -> impl Iterator<Item = u64> {
        (1..=size).map(|number| (number * SETS) as u64)
    }

    fn now() -> Timestamp {
        Timestamp::from_secs(1_700_000_000)
    }

    #[test]
    fn newcomers_take_the_room_of_those_with_the_fewest_strikes() {
        let (strikes, rule) = (Strikes::default(), BanRule::new(3));
        assert_eq!(strike(&strikes, 0, &rule, now()), None);
        assert_eq!(strike(&strikes, 0, &rule, now()), None);
        for caller in crowd(1000) {
            assert_eq!(strike(&strikes, caller, &rule, now()), None);
        }
        assert_eq!(strikes.set(0).len(), WAYS);
        assert!(strike(&strikes, 0, &rule, now()).is_some(), "still has two strikes");
    }

    #[test]
    fn a_ban_outweighs_strikes() {
        let (strikes, rule) = (Strikes::default(), BanRule::new(1));
        assert_eq!(strike(&strikes, 0, &rule, now()).map(|ban| ban.count), Some(1));
        for caller in crowd(1000) {
            for _ in 0..2 {
                strike(&strikes, caller, &BanRule::new(3), now());
            }
        }
        let later = now() + rule.duration;
        assert_eq!(strike(&strikes, 0, &rule, later).map(|ban| ban.count), Some(2));
    }

    #[test]
    fn those_whose_offences_count_no_more_leave_first() {
        let (strikes, rule) = (Strikes::default(), BanRule::new(3));
        let later = now() + rule.window;
        for _ in 0..2 {
            strike(&strikes, 0, &rule, now());
        }
        for caller in crowd(WAYS - 1) {
            strike(&strikes, caller, &rule, later);
        }
        assert_eq!(strikes.set(0).len(), WAYS);
        strike(&strikes, u64::MAX << 13, &rule, later);
        let set = strikes.set(0);
        assert!(set.iter().all(|offender| offender.fingerprint != 0));
        assert_eq!(set.len(), WAYS);
    }

    #[test]
    fn one_who_is_forgiven_starts_again() {
        let (strikes, rule) = (Strikes::default(), BanRule::new(2));
        strikes.forgive(7);
        assert_eq!(strike(&strikes, 7, &rule, now()), None);
        strikes.forgive(7);
        assert_eq!(strike(&strikes, 7, &rule, now() + Duration::from_secs(1)), None);
        assert!(strike(&strikes, 7, &rule, now() + Duration::from_secs(1)).is_some());
    }
}
