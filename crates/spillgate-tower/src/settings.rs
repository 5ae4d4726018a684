use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode, Uri};
use spillgate_policy::store::Store;
use spillgate_policy::{DescriptorOutcome, Error, Gate, Outcome, Request, Uncharged};

use crate::headers::{Headers, Quotas, Told};
use crate::log::{About, Log};
use crate::metrics::{Meter, Timer};
use crate::peer::Peers;
use crate::{ProblemJson, Reason, Refusal, Refuse};

/// What a layer and its services share.
pub(crate) struct Settings<S: Store, R> {
    pub(crate) gate: Arc<Gate<S>>,
    pub(crate) headers: Headers,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) peers: Peers,
    pub(crate) meter: Option<Arc<Meter>>,
    pub(crate) on_store_error: OnStoreError,
    pub(crate) logs_refusals: bool,
    log: Arc<Log>,
    responder: Arc<R>,
}

/// What becomes of a request about which the store could not decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreError {
    /// It is refused with a 503.
    #[default]
    Refuse,
    /// It goes ahead, not limited by anything; unless the store was not asked since it is asked
    /// too much, or whoever asks too much would pass.
    Allow,
}

/// What was decided about a request at once.
pub(crate) enum Checked {
    /// It goes ahead, and its response tells so.
    Plain(Option<Told>),
    /// There is more to be said. In a box, so that the other is small.
    Other(Box<Result<Outcome<'static>, Error>>),
}

/// What becomes of a request.
pub(crate) enum Ruling<B> {
    /// It goes ahead, perhaps after a wait. There is no outcome if the store failed.
    Pass(Option<Outcome<'static>>),
    Refuse(Response<B>),
}

impl<S: Store> Settings<S, ProblemJson> {
    pub(crate) fn new(gate: Arc<Gate<S>>) -> Self {
        Self {
            gate,
            headers: Headers::default(),
            quotas: Arc::default(),
            peers: Peers::default(),
            meter: None,
            on_store_error: OnStoreError::default(),
            logs_refusals: true,
            log: Arc::default(),
            responder: Arc::new(ProblemJson),
        }
    }
}

impl<S: Store, R> Settings<S, R> {
    pub(crate) fn respond_with<T>(self, responder: T) -> Settings<S, T> {
        Settings {
            gate: self.gate,
            headers: self.headers,
            quotas: self.quotas,
            peers: self.peers,
            meter: self.meter,
            on_store_error: self.on_store_error,
            logs_refusals: self.logs_refusals,
            log: self.log,
            responder: Arc::new(responder),
        }
    }

    /// Finds out who is at the other end of the connection.
    pub(crate) fn peer<B>(&self, request: &mut http::Request<B>) -> Option<IpAddr> {
        let peer = self.peers.find(request.extensions_mut());
        if peer.is_none() {
            self.peers.report_missing();
            if let Some(meter) = &self.meter {
                meter.missing_peer();
            }
        }
        peer
    }

    /// Decides at once, if the store can.
    #[inline]
    pub(crate) fn check_now(&self, request: &Request<'_>) -> Option<Checked> {
        let timer = self.meter.as_ref().and_then(|meter| meter.time());
        let checked = self.gate.check_now_and(request, |checked| match checked {
            Ok(outcome) if outcome.is_plain() => {
                if let Some(meter) = &self.meter {
                    meter.count(outcome);
                }
                Checked::Plain(self.headers.tell(outcome, &self.quotas))
            }
            other => Checked::Other(Box::new(other.map(Outcome::take))),
        });
        if checked.is_none() {
            timer.into_iter().for_each(Timer::forget);
        }
        checked
    }

    pub(crate) async fn check(&self, request: &Request<'_>) -> Result<Outcome<'static>, Error> {
        let _timer = self.meter.as_ref().and_then(|meter| meter.time());
        self.gate.check(request).await
    }

    /// Counts and logs what was decided, and makes the response of a request that is
    /// refused.
    pub(crate) fn judge<B>(
        &self,
        request: Request<'_>,
        checked: Result<Outcome<'static>, Error>,
    ) -> Ruling<B>
    where
        R: Refuse<B>,
    {
        self.note(&request, &checked);
        match checked {
            Ok(outcome) => match Reason::of(outcome.answer()) {
                None => Ruling::Pass(Some(outcome)),
                Some(reason) => self.refuse(reason, request, Some(&outcome)),
            },
            Err(error) => match (Reason::of_error(&error), self.on_store_error) {
                (Reason::StoreFailed, OnStoreError::Allow) => Ruling::Pass(None),
                (reason, _) => self.refuse(reason, request, None),
            },
        }
    }

    /// Counts and logs what was decided.
    pub(crate) fn note(&self, request: &Request<'_>, checked: &Result<Outcome<'_>, Error>) {
        match checked {
            Ok(outcome) => self.note_outcome(&About::request(request), outcome),
            Err(error) => self.store_failed(error),
        }
    }

    fn note_outcome(&self, about: &About<'_>, outcome: &Outcome<'_>) {
        if let Some(error) = outcome.shadow_error() {
            self.store_failed(error);
        }
        if let Some(meter) = &self.meter {
            meter.count(outcome);
        }
        if self.logs_refusals {
            self.log.decided(about, outcome);
        }
    }

    /// Counts and logs what was decided about descriptors.
    pub(crate) fn note_descriptors(
        &self,
        domain: &str,
        checked: &Result<DescriptorOutcome<'_>, Error>,
    ) {
        match checked {
            Ok(outcome) => self.note_outcome(&About::domain(domain), outcome.outcome()),
            Err(error) if error.is_store() => self.store_failed(error),
            // Whoever asked is told.
            Err(_) => {}
        }
    }

    fn refuse<B>(
        &self,
        reason: Reason,
        request: Request<'_>,
        outcome: Option<&Outcome<'_>>,
    ) -> Ruling<B>
    where
        R: Refuse<B>,
    {
        let refusal = Refusal::new(reason, request, outcome);
        let mut response = self.responder.refuse(&refusal);
        self.headers.write_refusal(response.headers_mut(), &refusal, &self.quotas);
        Ruling::Refuse(response)
    }

    /// Tells a client what was decided.
    pub(crate) fn tell<B>(&self, outcome: &Outcome<'_>, response: &mut Response<B>) {
        if let Some(told) = self.headers.tell(outcome, &self.quotas) {
            told.write(response.headers_mut());
        }
    }

    /// Corrects what a request cost by its response, if the store is in this process.
    pub(crate) fn settle_now(
        &self,
        outcome: &mut Outcome<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) {
        if outcome.needs_settling()
            && let Some(settled) = self.gate.settle_now(outcome, status, headers)
        {
            self.settled(settled);
        }
    }

    pub(crate) async fn settle(
        &self,
        outcome: &mut Outcome<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) {
        self.settled(self.gate.settle(outcome, status, headers).await);
    }

    fn settled(&self, settled: Result<Vec<Uncharged>, Error>) {
        match settled {
            Ok(uncharged) => {
                uncharged.iter().for_each(|it| self.uncharged(&it.limit, it.amount));
            }
            Err(error) => self.store_failed(&error),
        }
    }

    /// Counts and logs that a caller would have owed more than a limit's bound.
    pub(crate) fn uncharged(&self, limit: &str, amount: u64) {
        if let Some(meter) = &self.meter {
            meter.uncharged(limit, amount);
        }
        self.log.uncharged(limit, amount);
    }

    /// Counts and logs that the store could not answer.
    pub(crate) fn store_failed(&self, error: &Error) {
        if let Some(meter) = &self.meter {
            meter.store_failed();
        }
        // That there is an overload is told once, by the store.
        if !error.is_overloaded() {
            self.log.store_failed(error);
        }
    }
}

/// What a gate looks at in a request.
pub(crate) fn asked<B>(request: &http::Request<B>, peer: Option<IpAddr>) -> Request<'_> {
    Request::new(request.method(), sent_uri(request), request.headers(), peer)
        .with_caller(request.extensions().get())
}

/// The URI that the client sent. A nested router of axum sees only the end of its path,
/// but a policy means the same everywhere.
fn sent_uri<B>(request: &http::Request<B>) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = request.extensions().get() {
        return uri;
    }
    request.uri()
}

impl<S: Store, R> Clone for Settings<S, R> {
    fn clone(&self) -> Self {
        Self {
            gate: Arc::clone(&self.gate),
            headers: self.headers,
            quotas: Arc::clone(&self.quotas),
            peers: self.peers.clone(),
            meter: self.meter.clone(),
            on_store_error: self.on_store_error,
            logs_refusals: self.logs_refusals,
            log: Arc::clone(&self.log),
            responder: Arc::clone(&self.responder),
        }
    }
}

impl<S: Store, R> fmt::Debug for Settings<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("gate", &self.gate)
            .field("headers", &self.headers)
            .field("on_store_error", &self.on_store_error)
            .field("logs_refusals", &self.logs_refusals)
            .finish_non_exhaustive()
    }
}
