//! Deciding about requests that others serve: a proxy that asks before it goes ahead, or a
//! program in another language.

use std::sync::Arc;

use http::Response;
use spillgate_policy::store::Store;
use spillgate_policy::{Error, Outcome, Request};

use crate::future::Place;
use crate::settings::Ruling;
use crate::{Reason, Refuse, SpillgateLayer};

impl<S: Store, R> SpillgateLayer<S, R> {
    /// Decides about a request, counts it and logs a refusal, as the services of this layer
    /// do, and leaves it to the program to answer.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn check(&self, request: &Request<'_>) -> Result<Outcome<'static>, Error> {
        let checked = self.settings.check(request).await;
        self.settings.note(request, &checked);
        checked
    }

    /// Counts what was decided elsewhere.
    pub fn count(&self, outcome: &Outcome<'_>) {
        if let Some(meter) = &self.settings.meter {
            meter.count(outcome);
        }
    }

    /// Counts and logs that nothing was decided elsewhere, if that is the store's fault.
    pub fn count_failure(&self, error: &Error) {
        if error.is_store() {
            self.settings.store_failed(error);
        }
    }

    /// Counts and logs what was not charged elsewhere, since a caller would have owed more than
    /// the limit's [bound](spillgate_policy::Limit::max_debt).
    pub fn count_uncharged(&self, limit: &str, amount: u64) {
        if amount > 0 {
            self.settings.uncharged(limit, amount);
        }
    }

    /// Tells whether a request that another server is going to serve may go ahead: a 200
    /// without a body, after the wait of a shaper, or a refusal with its 429, 403, 400 or 503;
    /// both with the headers for the client. What the request cost stands, since its
    /// response is not seen here.
    pub async fn verdict<B: Default>(&self, request: Request<'_>) -> Response<B>
    where
        R: Refuse<B>,
    {
        let settings = &self.settings;
        let checked = settings.check(&request).await;
        let reason = match &checked {
            Ok(outcome) => Reason::of(outcome.answer()),
            Err(error) => Some(Reason::of_error(error)),
        };
        let outcome = match settings.judge(request, checked) {
            Ruling::Refuse(mut response) => {
                // Refused in gRPC it would be a 200, and whoever asked would go ahead.
                *response.status_mut() = reason.unwrap_or(Reason::Denied).status();
                return response;
            }
            Ruling::Pass(outcome) => outcome,
        };
        let outcome = Place::new(Arc::clone(settings), outcome).waited().await;
        let mut response = Response::new(B::default());
        if let Some(outcome) = outcome {
            settings.tell(&outcome, &mut response);
        }
        response
    }
}
