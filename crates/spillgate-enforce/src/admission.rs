//! What becomes of a request that was decided.

use std::sync::Arc;

use http::Response;
use spillgate_policy::store::Store;
use spillgate_policy::{Error, Outcome, RequestView};

use crate::{Delayed, Enforcer, OnStoreError, Reason, Refusal, Refuse};

/// What becomes of a request.
#[derive(Debug)]
pub enum Admission<B> {
    /// It goes ahead, perhaps after a [wait](Enforcer::delay). There is no outcome if the store
    /// failed.
    Pass(Option<Outcome<'static>>),
    /// It is refused with this response.
    Refuse(Response<B>),
}

impl<S: Store, R> Enforcer<S, R> {
    /// Makes the response to a refused request, with its headers. A request about which the store
    /// could not decide passes or not by the enforcer's [`OnStoreError`].
    pub fn admit<B>(
        &self,
        request: RequestView<'_>,
        decided: Result<Outcome<'static>, Error>,
    ) -> Admission<B>
    where
        R: Refuse<B>,
    {
        match decided {
            Ok(outcome) => match Reason::of(outcome.answer()) {
                None => Admission::Pass(Some(outcome)),
                Some(reason) => self.refuse(reason, request, Some(&outcome)),
            },
            Err(error) => match (Reason::of_error(&error), self.on_store_error) {
                (Reason::StoreFailed, OnStoreError::Allow) => Admission::Pass(None),
                (reason, _) => self.refuse(reason, request, None),
            },
        }
    }

    fn refuse<B>(
        &self,
        reason: Reason,
        request: RequestView<'_>,
        outcome: Option<&Outcome<'_>>,
    ) -> Admission<B>
    where
        R: Refuse<B>,
    {
        let refusal = Refusal::new(reason, request, outcome);
        let mut response = self.responder.refuse(&refusal);
        self.headers.write_refusal(response.headers_mut(), &refusal, &self.quotas);
        Admission::Refuse(response)
    }

    /// An allowed outcome with its turn under a shaper, to be waited for.
    pub fn delay(&self, outcome: Option<Outcome<'static>>) -> Delayed<S> {
        Delayed::new(Arc::clone(&self.gate), outcome)
    }

    /// Decides a request that another server is going to serve, and answers whether it may go
    /// ahead: a 200 without a body, after the wait of a shaper, or a refusal with its 429, 403,
    /// 400 or 503; both with the headers for the client. The cost stands, since the response is
    /// not seen here. For the same reason permits of concurrency limits are returned at once.
    pub async fn verdict<B: Default>(&self, request: RequestView<'_>) -> Response<B>
    where
        R: Refuse<B>,
    {
        let decided = self.decide(&request).await;
        let status = match &decided {
            Ok(outcome) => Reason::of(outcome.answer())
                .map(|reason| Refusal::new(reason, request, Some(outcome)).status()),
            Err(error) => Some(Reason::of_error(error).status()),
        };
        let outcome = match self.admit(request, decided) {
            Admission::Refuse(mut response) => {
                // A refusal in gRPC is a 200, and the proxy that asked would go ahead.
                *response.status_mut() = status.unwrap_or(Reason::Denied.status());
                return response;
            }
            Admission::Pass(outcome) => outcome,
        };
        let outcome = self.delay(outcome).wait().await;
        let mut response = Response::new(B::default());
        if let Some(headers) = outcome.and_then(|outcome| self.rate_limit_headers(&outcome)) {
            headers.write(response.headers_mut());
        }
        response
    }
}
