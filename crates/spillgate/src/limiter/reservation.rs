use std::hash::{BuildHasher, Hash};

use super::tiers::Caller;
use super::{Limiter, Settled};
use crate::algorithm::{SpendRecord, TokenBucket};
use crate::{Clock, Decision, Timestamp};

/// A cost spent in advance, to be [settled](Limiter::settle) once the actual cost is known,
/// or [cancelled](Limiter::cancel).
///
/// If a reservation is dropped, the estimate stays spent.
#[derive(Debug)]
#[must_use = "settle the reservation, or the estimate stays spent"]
pub struct Reservation {
    caller: Caller,
    own: Option<TokenBucket>,
    spent: SpendRecord,
}

impl Reservation {
    /// The estimate that was spent.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.spent.cost
    }

    /// The decision that allowed it.
    pub fn decision(&self) -> Decision {
        self.spent.into()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a reservation is used once")]
impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Shorthand for [`reserve_n`](Self::reserve_n) with an estimate of 1.
    ///
    /// # Errors
    ///
    /// The decision, if the estimate is denied.
    pub fn reserve(&self, key: &K) -> Result<Reservation, Decision> {
        self.reserve_n(key, 1)
    }

    /// Spends an estimated cost in advance, for work whose actual cost is known only
    /// afterwards: language-model tokens, bytes, failed logins.
    ///
    /// ```
    /// # use spillgate::{Limiter, ManualClock};
    /// # let clock = ManualClock::default();
    /// let tokens = Limiter::<str>::builder("1000/min").clock(clock).build()?;
    /// match tokens.reserve_n("alice", 300) {
    ///     Ok(reservation) => {
    ///         let settled = tokens.settle(reservation, 450); // more than estimated
    ///         assert_eq!(settled.left.remaining(), 550);
    ///     }
    ///     Err(denied) => println!("retry in {:?}", denied.retry_after()),
    /// }
    /// # Ok::<(), spillgate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The decision, if the estimate is denied.
    pub fn reserve_n(&self, key: &K, estimate: u64) -> Result<Reservation, Decision> {
        self.reserve_at(key, estimate, self.clock.now())
    }

    /// [`reserve_n`](Self::reserve_n) at a given time.
    ///
    /// # Errors
    ///
    /// The decision, if the estimate is denied.
    pub fn reserve_at(
        &self,
        key: &K,
        estimate: u64,
        now: Timestamp,
    ) -> Result<Reservation, Decision> {
        let caller = self.caller(key);
        let decision = self.check_anywhere(caller, estimate, now);
        let spent = decision.spent().ok_or(decision)?;
        Ok(Reservation { caller, own: None, spent })
    }

    /// The reservation of a call that [spent](Decision::spent) something on this limiter, under
    /// a quota that came with the call if it had one: for what was spent by another method than
    /// [`reserve`](Self::reserve). Settle or cancel each call once.
    pub fn reservation(
        &self,
        key: &K,
        bucket: Option<TokenBucket>,
        spent: SpendRecord,
    ) -> Reservation {
        Reservation { caller: self.caller(key), own: bucket, spent }
    }

    /// Replaces a reservation's estimate with the actual cost: debits the difference, into debt
    /// if necessary, or refunds it.
    ///
    /// A refund excludes what has been refilled since: reservations that stay open while an
    /// allowance refills, and are settled together, return one burst at most, so that in any time `t`
    /// in which calls from before are settled, at most `2·burst + rate·t` pass. A bucket returns
    /// what the estimate still owes, a window only what was spent in the current one. Debt is
    /// limited by [`max_debt`](super::LimiterBuilder::max_debt).
    ///
    /// The reservation must come from this limiter.
    pub fn settle(&self, reservation: Reservation, actual: u64) -> Settled {
        self.settle_at(reservation, actual, self.clock.now())
    }

    /// [`settle`](Self::settle) at a given time.
    pub fn settle_at(&self, reservation: Reservation, actual: u64, now: Timestamp) -> Settled {
        let Reservation { caller, own, spent } = reservation;
        self.correct(caller, own.as_ref(), &spent, actual, now)
    }

    /// Undoes a reservation if nothing has been spent since, and returns whether it did.
    /// Otherwise the estimate stays spent.
    ///
    /// Use it to leave the queue of a [shaper](crate::AlgorithmKind::LeakyShaper), where only
    /// the last call can leave without a gap that no other call may fill. Elsewhere,
    /// [settle](Self::settle) at 0.
    pub fn cancel(&self, reservation: Reservation) -> bool {
        self.cancel_at(reservation, self.clock.now())
    }

    /// [`cancel`](Self::cancel) at a given time.
    pub fn cancel_at(&self, reservation: Reservation, now: Timestamp) -> bool {
        let Reservation { caller, own, spent } = reservation;
        self.undo_last(caller, own.as_ref(), &spent, now)
    }
}
