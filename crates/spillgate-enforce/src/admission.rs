//! What becomes of a request that was decided.

use std::sync::Arc;

use http::Response;
use spillgate_policy::store::Store;
use spillgate_policy::{Error, Outcome, RequestView, Subject};

use crate::{Delayed, Enforcer, OnStoreError, Reason, Refusal, Refuse};

/// What becomes of a request.
#[derive(Debug)]
pub enum Admission<B> {
    /// It goes ahead, perhaps after a [wait](Enforcer::delay). If the store failed, there is no
    /// outcome, or one of adaptive limits alone.
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
        match self.resolve(request, decided) {
            Ok(outcome) => match outcome.as_ref().and_then(|it| Reason::of(it.answer())) {
                None => Admission::Pass(outcome),
                Some(reason) => self.refuse(reason, request, outcome.as_ref()),
            },
            Err(reason) => self.refuse(reason, request, None),
        }
    }

    /// What a failure of the store means. A request that goes ahead nevertheless still meets its
    /// adaptive limits: they are of this process, and protect the service also then.
    fn resolve(
        &self,
        request: RequestView<'_>,
        decided: Result<Outcome<'static>, Error>,
    ) -> Result<Option<Outcome<'static>>, Reason> {
        let error = match decided {
            Ok(outcome) => return Ok(Some(outcome)),
            Err(error) => error,
        };
        match (Reason::of_error(&error), self.on_store_error) {
            (Reason::StoreFailed, OnStoreError::Allow) => {
                let outcome = self.gate.decide_without_store(&request);
                if let Some(outcome) = &outcome {
                    self.note(Subject::Request(&request), Ok(outcome));
                }
                Ok(outcome)
            }
            (reason, _) => Err(reason),
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
        Admission::Refuse(self.response_to(&Refusal::new(reason, request, outcome)))
    }

    fn response_to<B>(&self, refusal: &Refusal<'_>) -> Response<B>
    where
        R: Refuse<B>,
    {
        let mut response = self.responder.refuse(refusal);
        self.headers.write_refusal(response.headers_mut(), refusal, &self.quotas);
        response
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
        let resolved = self.resolve(request, decided);
        let refusal = match &resolved {
            Ok(outcome) => outcome.as_ref().and_then(|outcome| {
                let reason = Reason::of(outcome.answer())?;
                Some(Refusal::new(reason, request, Some(outcome)))
            }),
            Err(reason) => Some(Refusal::new(*reason, request, None)),
        };
        if let Some(refusal) = refusal {
            let mut response = self.response_to(&refusal);
            // A refusal in gRPC is a 200, and the proxy that asked would go ahead.
            *response.status_mut() = refusal.status();
            return response;
        }
        let outcome = resolved.ok().flatten();
        let outcome = self.delay(outcome).wait().await;
        let mut response = Response::new(B::default());
        if let Some(headers) = outcome.and_then(|outcome| self.rate_limit_headers(&outcome)) {
            headers.write(response.headers_mut());
        }
        response
    }
}
