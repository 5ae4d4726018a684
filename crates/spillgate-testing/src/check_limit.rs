use spillgate::Decision;
use spillgate_policy::store::Store;
use spillgate_policy::{Error, Gate, LimitCheck};

/// Asks a gate about one limit, as most tests do.
pub trait CheckLimit {
    /// Spends a cost under a limit by name.
    ///
    /// # Errors
    ///
    /// As for [`Gate::decide`], and if there is no decision since the limit is open in an outage.
    fn check_limit(
        &self,
        limit: &str,
        values: &[&str],
        cost: u64,
    ) -> impl Future<Output = Result<Decision, Error>> + Send;
}

impl<S: Store> CheckLimit for Gate<S> {
    async fn check_limit(
        &self,
        limit: &str,
        values: &[&str],
        cost: u64,
    ) -> Result<Decision, Error> {
        let outcome = self.decide(&LimitCheck::new(limit, values, cost)).await?;
        if let Some(error) = outcome.shadow_error() {
            return Err(Error::store(error.to_string()));
        }
        let undecided = || Error::store("the limit is open, so nothing was decided");
        outcome.decision().copied().ok_or_else(undecided)
    }
}
