//! Deciding about descriptors, which proxies ask about in place of requests.

use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use spillgate_policy::store::Store;
use spillgate_policy::{Descriptor, DescriptorOutcome, Error};

use crate::SpillgateLayer;
use crate::metrics::Timer;
use crate::round::whole_seconds;

impl<S: Store, R> SpillgateLayer<S, R> {
    /// Decides about the descriptors of a call, counts it and logs a refusal, as the services
    /// of this layer do.
    ///
    /// # Errors
    ///
    /// As for [`Gate::check_descriptors`](spillgate_policy::Gate::check_descriptors).
    pub async fn check_descriptors(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Result<DescriptorOutcome<'static>, Error> {
        let timer = self.settings.meter.as_ref().and_then(|meter| meter.time());
        let checked = self.settings.gate.check_descriptors(domain, descriptors).await;
        drop(timer);
        self.settings.note_descriptors(domain, &checked);
        checked
    }

    /// [Decides](Self::check_descriptors) about the descriptors of a call at once, if the store
    /// can. If it cannot, nothing has happened.
    pub fn check_descriptors_now(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Option<Result<DescriptorOutcome<'static>, Error>> {
        let timer = self.settings.meter.as_ref().and_then(|meter| meter.time());
        let Some(checked) = self.settings.gate.check_descriptors_now(domain, descriptors) else {
            timer.into_iter().for_each(Timer::forget);
            return None;
        };
        drop(timer);
        self.settings.note_descriptors(domain, &checked);
        Some(checked)
    }

    /// What the client is told of whom a call is about: `RateLimit-Policy` and `RateLimit` of
    /// the limit that is nearest to denying, and `Retry-After` if it denies and waiting helps.
    pub fn descriptor_headers(
        &self,
        outcome: &DescriptorOutcome<'_>,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let told = self.settings.headers.tell_rate_limit(outcome.outcome(), &self.settings.quotas);
        let retry_after = outcome.outcome().retry_after().filter(|_| !outcome.is_allowed());
        let retry_after =
            retry_after.map(|time| (RETRY_AFTER, HeaderValue::from(whole_seconds(time).max(1))));
        told.into_iter().flatten().chain(retry_after)
    }
}
