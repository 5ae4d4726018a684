use std::hash::{BuildHasher, Hash};

use super::Limiter;
use super::tiers::Client;
use crate::{Clock, Decision};

/// A cost taken in advance, to be [settled](Limiter::settle) when the true one is
/// known.
///
/// Dropped unsettled, the reservation stands: the estimate was spent.
#[derive(Debug)]
#[must_use = "settle the reservation, or the estimate stays spent"]
pub struct Reservation {
    client: Client,
    decision: Decision,
}

impl Reservation {
    /// What was taken in advance.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.decision.cost()
    }

    /// The decision that allowed it.
    pub fn decision(&self) -> Decision {
        self.decision
    }
}

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Takes an estimated cost in advance, for work whose true cost is known only
    /// when it is done: tokens of a language model, bytes, failed logins.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock};
    /// # let clock = ManualClock::default();
    /// let tokens = Limiter::<str>::builder("1000/min").clock(clock).build()?;
    /// match tokens.reserve("alice", 300) {
    ///     Ok(reservation) => tokens.settle(reservation, 450), // it was more
    ///     Err(denied) => println!("again in {:?}", denied.retry_after()),
    /// }
    /// assert_eq!(tokens.peek("alice").remaining(), 550);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The decision, if the estimate does not pass.
    pub fn reserve(&self, key: &K, estimate: u64) -> Result<Reservation, Decision> {
        let client = self.client(key);
        let decision = self.check_anywhere(client, estimate, self.clock.now());
        if decision.is_allowed() { Ok(Reservation { client, decision }) } else { Err(decision) }
    }

    /// Replaces a reservation's estimate by the actual cost: takes what is missing,
    /// also beyond the burst, or gives back what was too much.
    ///
    /// What is given back counts as never spent, also if it has been refilled since:
    /// with a window, into the one that is current. The reservation must come from
    /// this limiter.
    #[expect(clippy::needless_pass_by_value, reason = "a reservation is settled once")]
    pub fn settle(&self, reservation: Reservation, actual: u64) {
        let (client, now) = (reservation.client, self.clock.now());
        let reserved = reservation.reserved();
        if actual > reserved {
            self.take(client, actual - reserved, now);
        } else {
            self.give_back(client, reserved - actual, now);
        }
    }
}
