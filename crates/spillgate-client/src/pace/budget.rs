use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use spillgate::Timestamp;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::Settings;
use super::state::{Ready, Sent, State};
use crate::Error;
use crate::headers::RateLimitInfo;
use crate::status::BudgetStatus;

/// What all requests to one far side share.
#[derive(Debug)]
pub(crate) struct Budget {
    host: Box<str>,
    key: Box<str>,
    settings: Arc<Settings>,
    state: Mutex<State>,
    /// Notified whenever a request has ended.
    changed: Notify,
}

impl Budget {
    pub(super) fn new(host: Box<str>, key: Box<str>, settings: Arc<Settings>) -> Self {
        let state = State::new(settings.quota, settings.retries(), settings.now());
        Self { host, key, settings, state: Mutex::new(state), changed: Notify::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Waits until a request of this route may be sent, in the order of the calls.
    ///
    /// # Errors
    ///
    /// At once, if that is known to be after `give_up` or if too many wait; at `give_up` otherwise.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        route: &Arc<str>,
        give_up: Timestamp,
    ) -> Result<Ticket, Error> {
        let (route, turn) = {
            let mut state = self.lock();
            let route = state.route(route, self.settings.now());
            let turn = state.routes.get(&route).map(|route| Arc::clone(&route.turn));
            (route, turn.unwrap_or_default())
        };
        // Nobody waits: most requests end here.
        if let Ok(_turn) = turn.try_lock() {
            if let Ready::Now(sent) = self.lock().try_send(&route, self.settings.now()) {
                return Ok(self.ticket(route, sent));
            }
        }
        let _place = self.join()?;
        self.settings.counters.waited.add();
        let patience = give_up.since(self.settings.now());
        let result = match timeout(patience, turn.lock()).await {
            Ok(_turn) => self.wait(route, give_up).await,
            Err(_) => Err(Error::limited(&self.host, None)),
        };
        if result.is_err() {
            self.settings.counters.limited.add();
        }
        result
    }

    /// Waits as the first of a route.
    async fn wait(self: &Arc<Self>, route: Arc<str>, give_up: Timestamp) -> Result<Ticket, Error> {
        loop {
            // Before the state is looked at, so that no change of it is missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = self.settings.now();
            let ready = match self.lock().try_send(&route, now) {
                Ready::Now(sent) => return Ok(self.ticket(route, sent)),
                Ready::At(time) if time > give_up => {
                    return Err(Error::limited(&self.host, Some(time.since(now))));
                }
                Ready::At(time) => time,
                Ready::Later => give_up,
            };
            if now >= give_up {
                return Err(Error::limited(&self.host, None));
            }
            tracing::trace!(target: "spillgate", host = %self.host, wait = ?ready.since(now), "waiting");
            // Either is a reason to look again.
            let _ = timeout(ready.since(now), changed).await;
        }
    }

    /// A place among those who wait.
    fn join(&self) -> Result<Place<'_>, Error> {
        let mut state = self.lock();
        if state.waiting >= self.settings.max_queue {
            self.settings.counters.queue_full.add();
            return Err(Error::queue_full(&self.host, state.waiting));
        }
        state.waiting += 1;
        Ok(Place(self))
    }

    fn ticket(self: &Arc<Self>, route: Arc<str>, sent: Sent) -> Ticket {
        Ticket { budget: Arc::clone(self), route, sent, phase: Phase::Reserved }
    }

    /// Counts a new request for the retry budget.
    pub(crate) fn count_request(&self) {
        self.lock().retries.deposit();
    }

    /// Takes a retry out of the retry budget, if there is one.
    pub(crate) fn take_retry(&self) -> bool {
        let now = self.settings.now();
        let is_taken = self.lock().retries.withdraw(now);
        let counters = &self.settings.counters;
        let counter = if is_taken { &counters.retries } else { &counters.retries_denied };
        counter.add();
        is_taken
    }

    pub(super) fn status(&self, now: Timestamp) -> BudgetStatus {
        let state = self.lock();
        let limits = state.replicas.iter().map(|(key, it)| (key.clone(), it.status(now)));
        let mut limits: Vec<_> = limits.collect();
        limits.sort_by(|one, other| one.0.cmp(&other.0));
        BudgetStatus {
            host: self.host.clone(),
            key: self.key.clone(),
            in_flight: state.in_flight,
            max_in_flight: state.ramp.limit(now),
            waiting: state.waiting,
            blocked_for: state.blocked_until.since(now),
            limits,
        }
    }
}

struct Place<'b>(&'b Budget);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

/// The permission to send one request. Dropped before that, it gives back what it took.
#[derive(Debug)]
#[must_use = "dropped, nothing is sent"]
pub(crate) struct Ticket {
    budget: Arc<Budget>,
    route: Arc<str>,
    sent: Sent,
    phase: Phase,
}

#[derive(Debug, PartialEq)]
enum Phase {
    /// Nothing has left the program.
    Reserved,
    /// The far side may have counted the request.
    Sent,
    /// It cannot have, since there was no connection.
    Missed,
    Answered,
}

impl Ticket {
    /// The request is handed over.
    pub(crate) fn send(&mut self) {
        self.phase = Phase::Sent;
        self.budget.settings.counters.sent.add();
    }

    /// The service was not ready in time, so nothing is sent.
    pub(crate) fn expire(self) -> Error {
        self.budget.settings.counters.limited.add();
        Error::limited(&self.budget.host, None)
    }

    /// The request never reached the far side: it costs nothing there.
    pub(crate) fn never_sent(mut self) {
        if self.phase == Phase::Sent {
            self.phase = Phase::Missed;
        }
    }

    /// Learns from a response. Returns whether it is a refusal of the far side's rate limits.
    pub(crate) fn answer(mut self, status: StatusCode, info: &RateLimitInfo) -> bool {
        self.phase = Phase::Answered;
        let settings = &self.budget.settings;
        let is_refused = is_refusal(status, info);
        let now = settings.now();
        let mut state = self.budget.lock();
        state.end(&self.route, !is_refused);
        state.learn(&self.route, self.sent.at, &info.limits, now, settings.max_block);
        if is_refused {
            settings.counters.refused.add();
            let wait = |refusals| settings.block(info, refusals);
            if let Some(wait) = state.refuse(&self.route, info, self.sent.at, now, wait) {
                settings.counters.blocks.add();
                // Without the key, which may be a secret.
                tracing::warn!(
                    target: "spillgate", host = %self.budget.host, status = status.as_u16(), ?wait,
                    "refused by a rate limit",
                );
            }
        } else if status.is_server_error() {
            state.fail(now);
        } else {
            state.accept(self.sent.at, now);
        }
        drop(state);
        self.budget.changed.notify_waiters();
        is_refused
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let now = self.budget.settings.now();
        let mut state = self.budget.lock();
        match self.phase {
            Phase::Answered => return,
            Phase::Sent => state.end(&self.route, false),
            Phase::Reserved => state.unsend(&self.route, self.sent, now),
            Phase::Missed => {
                state.miss(&self.route, now);
                state.fail(now);
            }
        }
        drop(state);
        self.budget.changed.notify_waiters();
    }
}

/// True if a response says that a rate limit has refused the request. GitHub says so with 403.
pub(crate) fn is_refusal(status: StatusCode, info: &RateLimitInfo) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => info.retry_after.is_some(),
        StatusCode::FORBIDDEN => info.retry_after.is_some() || info.is_exhausted(),
        _ => false,
    }
}
