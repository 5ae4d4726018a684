use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{Cmd, RedisError, ServerErrorKind, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;

use super::address::Address;
use super::breaker::{Breaker, State};
use super::failure::Failure;
use super::health::Counters;
use super::keep::Known;
use super::session::{Plan, Session};
use super::task::Task;
use super::whereabouts::Whereabouts;
use crate::engine::{EngineError, Fault};

/// The end of a time-out, which is waited in any case: an answer may have come in time to a
/// process that was held up itself.
const GRACE: Duration = Duration::from_millis(1);

/// The way to one server: calls go over it while the server is up, and fail at once while it
/// is down. A task in the background then connects anew.
pub(super) struct Link {
    core: Arc<Core>,
    _keeper: Task,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It failed.
    Failed(EngineError),
    /// The slot lives elsewhere.
    Moved(Address),
    /// The slot is on its way elsewhere, and this caller's state is there already.
    Ask(Address),
    /// The slot is on its way, and some of the states are here and some there.
    TryAgain,
}

/// What calls and the [task in the background](super::keep) share.
pub(super) struct Core {
    pub(super) plan: Arc<Plan>,
    pub(super) whereabouts: Whereabouts,
    pub(super) probe_key: String,
    pub(super) breaker: Breaker<Session>,
    pub(super) counters: Arc<Counters>,
    /// Tells the task in the background that the breaker has opened.
    pub(super) opened: Notify,
    /// Tells whoever waits that it has closed.
    pub(super) closed: Notify,
    pub(super) known: Mutex<Known>,
}

impl Link {
    /// Connects now, and fails if that fails.
    pub(super) async fn connect(
        plan: Arc<Plan>,
        whereabouts: Whereabouts,
        probe_key: String,
        counters: Arc<Counters>,
    ) -> Result<Self, EngineError> {
        let core = Core::new(plan, whereabouts, probe_key, counters);
        let session = core.connect().await?;
        core.close(session);
        Ok(Self::keep(core))
    }

    /// Connects in the background. Until then calls fail.
    pub(super) fn connect_later(
        plan: Arc<Plan>,
        whereabouts: Whereabouts,
        probe_key: String,
        counters: Arc<Counters>,
    ) -> Self {
        Self::keep(Core::new(plan, whereabouts, probe_key, counters))
    }

    fn keep(core: Core) -> Self {
        let core = Arc::new(core);
        Self { _keeper: Task::spawn(core.clone().keep()), core }
    }

    /// Makes a call that must be answered until a deadline, `time_out` after it began.
    pub(super) async fn call(
        &self,
        call: &Cmd,
        is_asking: bool,
        (deadline, time_out): (Instant, Duration),
    ) -> Result<Value, Trouble> {
        let core = &*self.core;
        let session = core.session().map_err(Trouble::Failed)?;
        let place = core.counters.enter(core.plan.options.in_flight).map_err(Trouble::Failed)?;
        let sent = Instant::now();
        let answer = before(deadline, session.call(call, is_asking)).await;
        drop(place);
        match answer {
            None => {
                let error = session.late(time_out);
                Counters::count(&core.counters.time_outs);
                if core.breaker.timed_out(&session, &error, Instant::now()) {
                    core.note_opened(&error);
                }
                Err(Trouble::Failed(error))
            }
            Some(answer) => {
                core.breaker.answered();
                core.counters.answered(sent.elapsed());
                answer.map_err(|error| core.judge(&session, &error))
            }
        }
    }

    /// Waits until calls are made again, or until a deadline.
    pub(super) async fn wait_until_up(&self, deadline: Instant) {
        loop {
            let up = self.core.closed.notified();
            if self.core.breaker.session().is_some() || timeout_at(deadline, up).await.is_err() {
                return;
            }
        }
    }

    /// What is wrong, if calls fail at once, and since when that or the opposite is so.
    pub(super) fn state(&self) -> (Option<EngineError>, Instant) {
        match &*self.core.breaker.state() {
            State::Closed { since, .. } => (None, *since),
            State::Open { error, since } => (Some(error.clone()), *since),
        }
    }
}

impl Core {
    fn new(
        plan: Arc<Plan>,
        whereabouts: Whereabouts,
        probe_key: String,
        counters: Arc<Counters>,
    ) -> Self {
        let text = format!("{} is not connected yet", plan.options.target);
        let breaker = Breaker::open(EngineError::new(Fault::Unreachable, text), Instant::now());
        Self {
            plan,
            whereabouts,
            probe_key,
            breaker,
            counters,
            opened: Notify::new(),
            closed: Notify::new(),
            known: Mutex::default(),
        }
    }

    /// What calls are made on, or why none are.
    fn session(&self) -> Result<Arc<Session>, EngineError> {
        match &*self.breaker.state() {
            State::Closed { session, .. } => Ok(session.clone()),
            State::Open { error, since } => {
                Counters::count(&self.counters.rejected);
                let text = format!("{error} (down for {:.1} s)", since.elapsed().as_secs_f64());
                Err(EngineError::new(error.fault(), text))
            }
        }
    }

    /// What follows from an error that was answered.
    fn judge(&self, session: &Arc<Session>, error: &RedisError) -> Trouble {
        let redirect = || {
            let (address, _) = error.redirect_node()?;
            // A node that does not know its own name leaves it out.
            let host = session.address.host().filter(|_| address.starts_with(':'));
            Address::parse(&format!("{}{address}", host.unwrap_or_default()), 0)
        };
        if error.kind() == ServerErrorKind::TryAgain.into() {
            return Trouble::TryAgain;
        }
        if let Some(address) = redirect() {
            return match error.kind() == ServerErrorKind::Ask.into() {
                true => Trouble::Ask(address),
                false => Trouble::Moved(address),
            };
        }
        Counters::count(&self.counters.failures);
        let failure = Failure::of(&session.address, error);
        if failure.is_fatal {
            self.trip(session, &failure.error);
        }
        Trouble::Failed(failure.error)
    }

    pub(super) fn trip(&self, session: &Arc<Session>, error: &EngineError) {
        if self.breaker.trip(session, error, Instant::now()) {
            self.note_opened(error);
        }
    }

    fn note_opened(&self, error: &EngineError) {
        Counters::count(&self.counters.outages);
        warn_of_outage(&self.plan, error);
        self.opened.notify_one();
    }
}

/// Tells operators that calls fail, and why.
pub(super) fn warn_of_outage(plan: &Plan, error: &EngineError) {
    warn!(
        engine = %plan.options.target,
        %error,
        "the engine is down: until it is back, each limit goes by its `outage`"
    );
}

/// What a call answers before a deadline.
async fn before<T>(deadline: Instant, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    let most = deadline.checked_sub(GRACE).unwrap_or(deadline);
    if let Ok(answer) = timeout_at(most, &mut call).await {
        return Some(answer);
    }
    timeout(GRACE, call).await.ok()
}
