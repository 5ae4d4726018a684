//! Permits that programs elsewhere hold: counted and logged here for every protocol.

use std::time::Duration;

use spillgate::adaptive::Ending;
use spillgate_policy::store::{PermitId, Store};
use spillgate_policy::{Acquired, Error, Subject};

use crate::Enforcer;

impl<S: Store, R> Enforcer<S, R> {
    /// Takes permits of a concurrency limit, counts that, and logs a denial. See
    /// [`Gate::acquire`](spillgate_policy::Gate::acquire).
    ///
    /// # Errors
    ///
    /// As for [`Gate::acquire`](spillgate_policy::Gate::acquire).
    pub async fn acquire(
        &self,
        limit: &str,
        values: &[&str],
        count: u64,
        ttl: Option<Duration>,
    ) -> Result<Acquired, Error> {
        let timer = self.meter.as_ref().and_then(|meter| meter.time());
        let acquired = self.gate.acquire(limit, values, count, ttl).await;
        drop(timer);
        self.note(Subject::Limits, acquired.as_ref().map(Acquired::outcome));
        acquired
    }

    /// Lets acquired permits expire later. See [`Gate::renew`](spillgate_policy::Gate::renew).
    ///
    /// # Errors
    ///
    /// As for [`Gate::renew`](spillgate_policy::Gate::renew).
    pub async fn renew(&self, id: PermitId, ttl: Duration) -> Result<bool, Error> {
        self.gate.renew(id, ttl).await.inspect_err(|error| self.note_error(error))
    }

    /// Gives acquired permits back. See [`Gate::release`](spillgate_policy::Gate::release).
    ///
    /// # Errors
    ///
    /// As for [`Gate::release`](spillgate_policy::Gate::release).
    pub async fn release(&self, id: PermitId) -> Result<bool, Error> {
        self.gate.release(id).await.inspect_err(|error| self.note_error(error))
    }

    /// Gives acquired permits back, and notes how the call ended that held them. See
    /// [`Gate::release_as`](spillgate_policy::Gate::release_as).
    ///
    /// # Errors
    ///
    /// As for [`Gate::release`](spillgate_policy::Gate::release).
    pub async fn release_as(&self, id: PermitId, ending: Ending) -> Result<bool, Error> {
        let released = self.gate.release_as(id, ending).await;
        self.note_steps();
        released.inspect_err(|error| self.note_error(error))
    }
}
