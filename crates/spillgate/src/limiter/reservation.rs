use std::hash::{BuildHasher, Hash};

use super::tiers::Client;
use super::{Limiter, Settled};
use crate::algorithm::Charged;
use crate::{Clock, Decision};

/// A cost taken in advance, to be [settled](Limiter::settle) when the true one is
/// known, or [cancelled](Limiter::cancel).
///
/// Dropped unsettled, the reservation stands: the estimate was spent.
#[derive(Debug)]
#[must_use = "settle the reservation, or the estimate stays spent"]
pub struct Reservation {
    client: Client,
    decision: Decision,
    charged: Charged,
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

// A reservation is used once, so it is taken by value.
#[expect(clippy::needless_pass_by_value, reason = "a reservation is used once")]
impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Takes an estimated cost in advance, for work whose true cost is known only
    /// when it is done: tokens of a language model, bytes, failed logins.
    ///
    /// ```
    /// # use spillgate::{Limiter, ManualClock};
    /// # let clock = ManualClock::default();
    /// let tokens = Limiter::<str>::builder("1000/min").clock(clock).build()?;
    /// match tokens.reserve("alice", 300) {
    ///     Ok(reservation) => {
    ///         let settled = tokens.settle(reservation, 450); // it was more
    ///         assert_eq!(settled.left.remaining(), 550);
    ///     }
    ///     Err(denied) => println!("again in {:?}", denied.retry_after()),
    /// }
    /// # Ok::<(), spillgate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The decision, if the estimate does not pass.
    pub fn reserve(&self, key: &K, estimate: u64) -> Result<Reservation, Decision> {
        let client = self.client(key);
        let decision = self.check_anywhere(client, estimate, self.clock.now());
        let charged = decision.charged().ok_or(decision)?;
        Ok(Reservation { client, decision, charged })
    }

    /// Replaces a reservation's estimate by the actual cost: takes what is missing,
    /// also beyond the burst, or gives back what was too much.
    ///
    /// What has been refilled since is not given back: reservations that are open while an
    /// allowance refills, and are settled together, give back at most one burst. So of
    /// a bucket comes back what the charge still owes, and of a window only what was charged
    /// in it. A debt goes no deeper than the limiter's [bound](super::Builder::max_debt).
    ///
    /// The reservation must come from this limiter.
    pub fn settle(&self, reservation: Reservation, actual: u64) -> Settled {
        let Reservation { client, charged, .. } = reservation;
        self.correct(client, None, &charged, actual, self.clock.now())
    }

    /// Takes a reservation back if nothing has been spent since, and tells whether it did. If
    /// something has, the estimate stays spent.
    ///
    /// This is for whoever leaves a [shaper](crate::AlgorithmKind::LeakyShaper)'s queue:
    /// only the last in line can go without leaving a gap that nobody may fill. Others
    /// [settle](Self::settle) at 0.
    pub fn cancel(&self, reservation: Reservation) -> bool {
        self.uncharge(reservation.client, None, &reservation.charged, self.clock.now())
    }

    /// [Settles](Self::settle) a call whose charge was kept elsewhere, under a quota of its own
    /// if it had one. A call must be settled once.
    pub fn settle_charged(
        &self,
        key: &K,
        bucket: Option<crate::algorithm::TokenBucket>,
        charged: &Charged,
        actual: u64,
    ) -> Settled {
        self.correct(self.client(key), bucket.as_ref(), charged, actual, self.clock.now())
    }

    /// [Cancels](Self::cancel) a call whose charge was kept elsewhere. A call must be cancelled
    /// once: later, another may have left the same word.
    pub fn cancel_charged(
        &self,
        key: &K,
        bucket: Option<crate::algorithm::TokenBucket>,
        charged: &Charged,
    ) -> bool {
        self.uncharge(self.client(key), bucket.as_ref(), charged, self.clock.now())
    }
}
