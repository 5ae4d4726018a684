use std::sync::Arc;

use spillgate::{Decision, Settled};

use crate::Limiter;

/// A cost spent in advance, with the limiter that it was spent on: it can be settled after the
/// program has dropped the limiter, and never on another one.
///
/// If it is dropped, the estimate stays spent.
#[derive(Debug)]
#[must_use = "settle the reservation, or the estimate stays spent"]
pub struct Reservation {
    limiter: Arc<Limiter>,
    inner: spillgate::Reservation,
}

impl Reservation {
    /// Spends an estimate in advance: see [`spillgate::Limiter::reserve_n`].
    ///
    /// # Errors
    ///
    /// The decision, if the estimate is denied.
    pub fn new(limiter: Arc<Limiter>, key: &[u8], estimate: u64) -> Result<Self, Decision> {
        let inner = limiter.reserve_n(key, estimate)?;
        Ok(Self { limiter, inner })
    }

    /// The estimate that was spent.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.inner.reserved()
    }

    /// The decision that allowed it.
    pub fn decision(&self) -> Decision {
        self.inner.decision()
    }

    /// Replaces the estimate with the actual cost: see [`spillgate::Limiter::settle`].
    pub fn settle(self, actual: u64) -> Settled {
        self.limiter.settle(self.inner, actual)
    }

    /// Undoes the reservation if nothing has been spent since, and returns whether it did: see
    /// [`spillgate::Limiter::cancel`].
    #[must_use]
    pub fn cancel(self) -> bool {
        self.limiter.cancel(self.inner)
    }
}
