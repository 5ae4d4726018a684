use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{Cmd, RedisError, ServerErrorKind, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::AbortOnDrop;
use super::address::{Address, Target};
use super::breaker::{Breaker, BreakerState};
use super::checks::TimeReading;
use super::failure::Failure;
use super::health::CallCounters;
use super::queue::Queue;
use super::session::{Plan, Session};
use super::supervisor::LinkState;
use crate::backend::{BackendError, Fault, Result};

/// The link to one server: calls fail at once while it is down, and a background task reconnects.
pub(super) struct Link {
    core: Arc<LinkCore>,
    _keeper: AbortOnDrop,
}

/// Why a call has no reply.
#[derive(Debug)]
pub(super) enum CallError {
    Failed(BackendError),
    /// The slot has moved.
    Moved(Address),
    /// The slot is migrating, and the key is there already.
    Ask(Address),
    /// The slot is migrating, and the keys are in both places.
    TryAgain,
}

/// What calls and the [supervisor](super::supervisor) share.
pub(super) struct LinkCore {
    pub(super) plan: Arc<Plan>,
    /// The server, or how it is found.
    pub(super) target: Target,
    pub(super) probe_key: String,
    pub(super) breaker: Breaker<Session>,
    queue: Arc<Queue>,
    /// True after a call.
    is_used: AtomicBool,
    /// Notifies the supervisor that the breaker has opened.
    pub(super) opened: Notify,
    /// Notifies that it has closed.
    pub(super) closed: Notify,
    pub(super) known: Mutex<LinkState>,
}

impl Link {
    /// Connects, or fails.
    pub(super) async fn connect(
        plan: Arc<Plan>,
        target: Target,
        probe_key: String,
    ) -> Result<Self> {
        let core = LinkCore::new(plan, target, probe_key);
        let session = core.connect().await?;
        core.close(session);
        Ok(Self::keep(core))
    }

    /// Connects in the background. Until then calls fail.
    pub(super) fn connect_later(plan: Arc<Plan>, target: Target, probe_key: String) -> Self {
        Self::keep(LinkCore::new(plan, target, probe_key))
    }

    fn keep(core: LinkCore) -> Self {
        let core = Arc::new(core);
        Self { _keeper: AbortOnDrop::spawn(core.clone().keep()), core }
    }

    /// Makes a call when it has a permit and no handover is under way. Then it must be answered
    /// within `time_out`, which is reduced by the time it took.
    pub(super) async fn call(
        &self,
        call: &Cmd,
        is_asking: bool,
        time_out: &mut Duration,
    ) -> Result<Value, CallError> {
        let core = &*self.core;
        let mut session = core.session().map_err(CallError::Failed)?;
        let permit = match core.queue.enter_now() {
            Some(permit) => permit,
            None => {
                // Not held meanwhile: unanswered calls keep their permits until it is dropped.
                drop(session);
                let permit = core.queue.wait().await.map_err(CallError::Failed)?;
                session = core.session().map_err(CallError::Failed)?;
                permit
            }
        };
        if session.handover.is_under_way() {
            session.handover.decided().await;
            session = core.session().map_err(CallError::Failed)?;
        }
        // Written once, to avoid contention on the cache line.
        if !core.is_used.load(Ordering::Relaxed) {
            core.is_used.store(true, Ordering::Relaxed);
        }
        CallCounters::count(&core.plan.counters.calls);
        let (sent, allowed) = (Instant::now(), *time_out);
        let answer = session.call(call, is_asking, allowed, Some(permit)).await;
        let took = answer.as_ref().map_or_else(|_| sent.elapsed(), |answer| answer.took);
        core.queue.answered(took);
        *time_out = allowed.saturating_sub(took);
        if answer.as_ref().is_err_and(RedisError::is_timeout) {
            return Err(CallError::Failed(core.late(&session, allowed)));
        }
        core.breaker.answered();
        core.plan.counters.answered(took);
        answer.map(|answer| answer.value).map_err(|error| core.judge(&session, &error))
    }

    /// Waits until the breaker is closed, or until a deadline.
    pub(super) async fn wait_until_up(&self, deadline: Instant) {
        loop {
            let up = self.core.closed.notified();
            if self.core.breaker.session().is_some() || timeout_at(deadline, up).await.is_err() {
                return;
            }
        }
    }

    /// Notes the server's time, as a call has told it.
    pub(super) fn note_time(&self, reading: TimeReading) {
        if let Some(session) = self.core.breaker.session() {
            self.core.note_time(&session.address, reading);
        }
    }

    /// True if there were calls since this was last asked.
    pub(super) fn was_used(&self) -> bool {
        self.core.is_used.swap(false, Ordering::Relaxed)
    }

    /// Calls in flight, and queued.
    pub(super) fn load(&self) -> (u64, u64) {
        self.core.queue.load()
    }

    /// The error while open, and since when the breaker is open or closed.
    pub(super) fn state(&self) -> (Option<BackendError>, Instant) {
        match &*self.core.breaker.state() {
            BreakerState::Closed { since, .. } => (None, *since),
            BreakerState::Open { error, since } => (Some(error.clone()), *since),
        }
    }
}

impl LinkCore {
    fn new(plan: Arc<Plan>, target: Target, probe_key: String) -> Self {
        let text = format!("{} is not connected yet", plan.options.target);
        let breaker = Breaker::open(BackendError::new(Fault::Unreachable, text), Instant::now());
        let queue = Arc::new(Queue::new(&plan.options, plan.counters.clone()));
        Self {
            plan,
            target,
            probe_key,
            breaker,
            queue,
            is_used: AtomicBool::new(false),
            opened: Notify::new(),
            closed: Notify::new(),
            known: Mutex::default(),
        }
    }

    /// Notes the server's time, and whether its clock has stepped back.
    pub(super) fn note_time(&self, server: &Address, reading: TimeReading) {
        let back = self.known().clock.note(reading);
        if let Some(back) = back {
            self.plan.checks.note_step_back(server, back);
        }
    }

    /// The session, or why there is none.
    fn session(&self) -> Result<Arc<Session>> {
        match &*self.breaker.state() {
            BreakerState::Closed { session, .. } => Ok(session.clone()),
            BreakerState::Open { error, since } => {
                CallCounters::count(&self.plan.counters.rejected);
                let text = format!("{error} (down for {:.1} s)", since.elapsed().as_secs_f64());
                Err(BackendError::new(error.fault(), text))
            }
        }
    }

    /// Handles a timeout.
    pub(super) fn late(&self, session: &Arc<Session>, time_out: Duration) -> BackendError {
        let error = session.late(time_out);
        CallCounters::count(&self.plan.counters.time_outs);
        if self.breaker.timed_out(session, &error, Instant::now()) {
            self.note_opened(&error);
        }
        error
    }

    /// Handles an error reply.
    fn judge(&self, session: &Arc<Session>, error: &RedisError) -> CallError {
        if error.kind() == ServerErrorKind::TryAgain.into() {
            return CallError::TryAgain;
        }
        let redirect = error.redirect_node().map(|(node, _)| node);
        if let Some(address) =
            redirect.and_then(|node| Address::of_redirect(node, &session.address))
        {
            return match error.kind() == ServerErrorKind::Ask.into() {
                true => CallError::Ask(address),
                false => CallError::Moved(address),
            };
        }
        CallCounters::count(&self.plan.counters.failures);
        let failure = Failure::of(&session.address, error);
        if failure.is_fatal {
            self.trip(session, &failure.error);
        }
        CallError::Failed(failure.error)
    }

    pub(super) fn trip(&self, session: &Arc<Session>, error: &BackendError) {
        if self.breaker.trip(session, error, Instant::now()) {
            self.note_opened(error);
        }
    }

    fn note_opened(&self, error: &BackendError) {
        CallCounters::count(&self.plan.counters.outages);
        warn_of_outage(&self.plan, error);
        self.opened.notify_one();
    }
}

/// Logs an outage.
pub(super) fn warn_of_outage(plan: &Plan, error: &BackendError) {
    warn!(
        redis = %plan.options.target,
        %error,
        "Redis is down: each limit applies its `outage` setting until it is back"
    );
}
