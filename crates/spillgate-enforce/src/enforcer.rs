use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use spillgate_policy::store::{Memory, Store};
use spillgate_policy::{Decided, DescriptorOutcome, Error, Gate, Outcome, Question, Subject};

use crate::ProblemJson;
use crate::adaptive_log::AdaptiveLog;
use crate::denial_log::DenialLog;
use crate::headers::{Headers, Quotas, RateLimitHeaders, whole_seconds};
use crate::metrics::{LimitCallers, Meter, Metrics, Timer};

/// Decides, counts and logs: the only way to a [`Gate`]'s decisions for middleware and protocols,
/// so that nothing is decided without being counted, or denied without being logged.
///
/// ```
/// use spillgate_enforce::{Enforcer, Headers, Metrics};
/// use spillgate_policy::{Gate, Limit, Policy};
///
/// let policy = Policy::builder().limit(Limit::new("api", "10/s burst 20")).build()?;
/// let enforcer = Enforcer::new(Gate::new(policy)?)
///     .headers(Headers::default().retry_after_ms(true))
///     .metrics(Metrics::new());
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
///
/// Clones share the gate, the metrics and the log's rate limit.
#[must_use]
pub struct Enforcer<S: Store = Memory, R = ProblemJson> {
    pub(crate) gate: Arc<Gate<S>>,
    pub(crate) headers: Headers,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) meter: Option<Arc<Meter>>,
    pub(crate) on_store_error: OnStoreError,
    logs_denials: bool,
    pub(crate) log: Arc<DenialLog>,
    pub(crate) adaptive: Arc<AdaptiveLog>,
    pub(crate) responder: Arc<R>,
    /// True if something was decided since this was last looked at. Relaxed: it orders nothing.
    pub(crate) was_asked: Arc<AtomicBool>,
}

/// What becomes of a request about which the store could not decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreError {
    /// It is refused with a 503.
    #[default]
    Refuse,
    /// It goes ahead without limits, except for [adaptive](spillgate_policy::Adaptive) ones, which
    /// do not need the store; unless the store was not asked because it is overloaded: then
    /// callers who ask too much would pass.
    Allow,
}

impl<S: Store> Enforcer<S> {
    /// An enforcer that refuses with [`ProblemJson`], and logs denials.
    pub fn new(gate: impl Into<Arc<Gate<S>>>) -> Self {
        Self {
            gate: gate.into(),
            headers: Headers::default(),
            quotas: Arc::default(),
            meter: None,
            on_store_error: OnStoreError::default(),
            logs_denials: true,
            log: Arc::default(),
            adaptive: Arc::default(),
            responder: Arc::new(ProblemJson),
            was_asked: Arc::default(),
        }
    }
}

impl<S: Store, R> Enforcer<S, R> {
    /// The gate: to change the policy, lists and overrides, and to read their state.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate<S>> {
        &self.gate
    }

    /// Chooses the headers of responses.
    pub fn headers(self, headers: Headers) -> Self {
        Self { headers, ..self }
    }

    /// Refuses requests in another way: [`GrpcStatus`](crate::GrpcStatus), or a closure
    /// from `&Refusal<'_>` to a response. See [`Refuse`](crate::Refuse).
    pub fn respond_with<T>(self, responder: T) -> Enforcer<S, T> {
        Enforcer {
            gate: self.gate,
            headers: self.headers,
            quotas: self.quotas,
            meter: self.meter,
            on_store_error: self.on_store_error,
            logs_denials: self.logs_denials,
            log: self.log,
            adaptive: self.adaptive,
            responder: Arc::new(responder),
            was_asked: self.was_asked,
        }
    }

    /// Counts what is decided. Several enforcers can share their metrics.
    pub fn metrics(self, metrics: Metrics) -> Self {
        metrics.watch(&self.gate);
        let gate = Arc::clone(&self.gate);
        let meter = Meter::new(metrics, Box::new(move || gate.store().now()));
        Self { meter: Some(Arc::new(meter)), ..self }
    }

    /// Chooses what becomes of a request about which the store could not decide. Default:
    /// [refuse](OnStoreError::Refuse).
    pub fn on_store_error(self, on_store_error: OnStoreError) -> Self {
        Self { on_store_error, ..self }
    }

    /// Turns the log of denials on or off. Default: on. Store failures are always logged.
    pub fn log(self, logs_denials: bool) -> Self {
        Self { logs_denials, ..self }
    }

    /// Decides a question, counts it, and logs a denial.
    ///
    /// # Errors
    ///
    /// As for [`Gate::decide`].
    pub async fn decide<Q: Question>(&self, question: &Q) -> Result<Q::Outcome<'static>, Error> {
        let timer = self.meter.as_ref().and_then(|meter| meter.time());
        let decided = self.gate.decide(question).await;
        drop(timer);
        self.note(question.subject(), decided.as_ref().map(Decided::whole));
        decided
    }

    /// [Decides](Self::decide) without waiting, if the store can. Returns `None` if it cannot;
    /// then nothing has happened. `look` borrows the outcome: see [`Gate::try_decide`].
    #[inline]
    pub fn try_decide<Q: Question, T>(
        &self,
        question: &Q,
        look: impl FnOnce(Result<&mut Q::Outcome<'_>, Error>) -> T,
    ) -> Option<T> {
        let timer = self.meter.as_ref().and_then(|meter| meter.time());
        let decided = self.gate.try_decide(question, |decided| {
            self.note(question.subject(), decided.as_ref().map(|outcome| outcome.whole()));
            look(decided)
        });
        if decided.is_none() {
            timer.into_iter().for_each(Timer::forget);
        }
        decided
    }

    /// Counts and logs what was decided.
    // Always, since most of it is for what is rare, and out of line.
    #[inline(always)]
    pub(crate) fn note(&self, subject: Subject<'_>, decided: Result<&Outcome<'_>, &Error>) {
        // Written once, to avoid contention on the cache line.
        if !self.was_asked.load(Ordering::Relaxed) {
            self.was_asked.store(true, Ordering::Relaxed);
        }
        match decided {
            Ok(outcome) => {
                if let Some(meter) = &self.meter {
                    meter.count(subject, outcome);
                }
                if !outcome.is_plain() {
                    self.note_denial(subject, outcome);
                }
            }
            Err(error) => self.note_error(error),
        }
    }

    #[cold]
    fn note_denial(&self, subject: Subject<'_>, outcome: &Outcome<'_>) {
        if let Some(error) = outcome.shadow_error() {
            self.store_failed(error);
        }
        if self.logs_denials {
            self.log.decided(subject, outcome);
        }
        self.note_bans();
        self.note_steps_of(outcome);
    }

    /// Counts and logs an error of the store. Other errors are the asker's.
    pub(crate) fn note_error(&self, error: &Error) {
        if error.is_store() {
            self.store_failed(error);
        }
    }

    pub(crate) fn store_failed(&self, error: &Error) {
        if let Some(meter) = &self.meter {
            meter.store_failed();
        }
        // The store itself logs an overload, once.
        if !error.is_overloaded() {
            self.log.store_failed(error);
        }
    }

    /// Counts a request whose peer's address is not known.
    pub fn count_missing_peer(&self) {
        if let Some(meter) = &self.meter {
            meter.missing_peer();
        }
    }

    /// Who met a limit, or each limit, in the last 5 to 10 minutes: see [`Metrics::callers`]. Empty
    /// without [metrics](Self::metrics).
    #[must_use]
    pub fn callers(&self, limit: Option<&str>, most: usize) -> Vec<LimitCallers> {
        let now = self.gate.store().now();
        let callers = |meter: &Arc<Meter>| meter.metrics().callers(now, limit, most);
        self.meter.as_ref().map(callers).unwrap_or_default()
    }

    /// The headers of a response to a request with this outcome, if there are any.
    #[inline]
    pub fn rate_limit_headers(&self, outcome: &Outcome<'_>) -> Option<RateLimitHeaders> {
        self.headers.of(outcome, &self.quotas)
    }

    /// The headers for the client of a call with these descriptors: `RateLimit-Policy` and
    /// `RateLimit` of the limit that is nearest to denying, and `Retry-After` if it denies and
    /// waiting helps.
    pub fn descriptor_headers(
        &self,
        outcome: &DescriptorOutcome<'_>,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let headers = self.headers.rate_limit_of(outcome.outcome(), &self.quotas);
        let retry_after = outcome.outcome().retry_after().filter(|_| !outcome.is_allowed());
        let retry_after =
            retry_after.map(|time| (RETRY_AFTER, HeaderValue::from(whole_seconds(time).max(1))));
        headers.into_iter().flatten().chain(retry_after)
    }
}

impl<S: Store, R> Clone for Enforcer<S, R> {
    fn clone(&self) -> Self {
        Self {
            gate: Arc::clone(&self.gate),
            headers: self.headers,
            quotas: Arc::clone(&self.quotas),
            meter: self.meter.clone(),
            on_store_error: self.on_store_error,
            logs_denials: self.logs_denials,
            log: Arc::clone(&self.log),
            adaptive: Arc::clone(&self.adaptive),
            responder: Arc::clone(&self.responder),
            was_asked: Arc::clone(&self.was_asked),
        }
    }
}

impl<S: Store, R> fmt::Debug for Enforcer<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enforcer")
            .field("gate", &self.gate)
            .field("headers", &self.headers)
            .field("on_store_error", &self.on_store_error)
            .field("logs_denials", &self.logs_denials)
            .finish_non_exhaustive()
    }
}
