//! The background task of a link: connects, checks the server periodically, follows failovers, and
//! rotates credentials.

use std::pin::pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use super::address::Address;
use super::checks::ClockWatch;
use super::credentials::Credentials;
use super::failure::unreachable_because;
use super::health::CallCounters;
use super::info::Info;
use super::link::{LinkCore, warn_of_outage};
use super::session::Session;
use super::subscription::SentinelEvent;
use crate::backend::{BackendError, Fault, Result};

/// How often discovery is checked, and the server's clock if no other call tells its time.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// How often rejected credentials are retried while there is a session.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// Queued events. More would say the same.
const EVENTS: usize = 16;

/// What a link knows besides the session in use.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    /// The last server connected to.
    pub(super) address: Option<Address>,
    accepted: Option<Arc<Credentials>>,
    /// Rejected credentials that were logged.
    refused: Option<Arc<Credentials>>,
    /// The replica about to become the master, and since when that is known.
    pub(super) promoted: Option<(Address, Instant)>,
    /// The master before the last failover, and when it was left.
    pub(super) left: Option<(Address, Instant)>,
    /// A master named by Sentinels that could not be used.
    pub(super) unusable: Option<Address>,
    pub(super) clock: ClockWatch,
}

/// Why to replace a session that still answers.
pub(super) enum Finding {
    /// There is another master.
    Moved(Address),
    /// A replica is about to become the master.
    Promoted(Address),
    /// There are new credentials.
    Renewed,
}

impl LinkCore {
    /// Reconnects for as long as the link exists.
    pub(super) async fn keep(self: Arc<Self>) {
        let (sender, mut events) = mpsc::channel(EVENTS);
        let _subscriptions = self.target.subscribe(&self.plan, &sender);
        let mut renewed = self.plan.credentials.subscribe();
        // They may have been renewed since the first session was opened.
        renewed.mark_changed();
        // Logs once per outage, and again if an operator has to act.
        let mut logged: Option<Fault> = None;
        loop {
            if let Some(session) = self.breaker.session() {
                self.watch(&session, &mut events, &mut renewed).await;
                logged = Some(Fault::Unreachable);
                continue;
            }
            match self.connect().await {
                Ok(session) => {
                    self.close(session);
                }
                Err(error) => {
                    if logged.is_none() || (is_about_us(&error) && logged != Some(error.fault())) {
                        logged = Some(error.fault());
                        warn_of_outage(&self.plan, &error);
                    }
                    self.breaker.still_open(error);
                    tokio::select! {
                        () = sleep(self.plan.options.probe_interval) => {}
                        Some(event) = events.recv() => self.note(event),
                    }
                }
            }
        }
    }

    /// Discovers the server and connects with the current credentials.
    pub(super) async fn connect(&self) -> Result<Session> {
        let current = self.plan.credentials.refresh().await;
        if let Some(promoted) = self.promoted()
            && let Ok(session) = self.open(promoted).await
        {
            return Ok(session);
        }
        let last = self.known().address.clone();
        let addresses = match self.target.find(&self.plan, &current, last.as_ref()).await {
            Err(error) if is_about_us(&error) => {
                let Some(accepted) = self.accepted(&current) else { return Err(error) };
                let found = self.target.find(&self.plan, &accepted, last.as_ref()).await;
                found.map_err(|_| error)?
            }
            found => found?,
        };
        // Sentinels may still name a master that was left: its successor knows better.
        let (left, mut others): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| self.known().has_left(address));
        if !left.is_empty() {
            others.extend(last);
        }
        let mut problem = None;
        for address in others {
            match self.open(address).await {
                Ok(session) => return Ok(session),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        Err(problem.unwrap_or_else(|| {
            let text = format!("{} has no address", self.plan.options.target);
            BackendError::new(Fault::Unreachable, text)
        }))
    }

    /// The credentials accepted last, if they differ from the current ones.
    fn accepted(&self, current: &Arc<Credentials>) -> Option<Arc<Credentials>> {
        self.known().accepted.clone().filter(|accepted| !Arc::ptr_eq(accepted, current))
    }

    /// Connects to a server. If it rejects the current credentials, retries with those it accepted
    /// before: files may be renewed ahead of the server.
    pub(super) async fn open(&self, address: Address) -> Result<Session> {
        let current = self.plan.credentials.current();
        let opened = self.open_with(current.clone(), address.clone()).await;
        let Err(error) = opened else { return opened };
        match self.accepted(&current) {
            Some(accepted) if is_about_us(&error) => {
                let again = self.open_with(accepted, address).await.map_err(|_| error.clone())?;
                self.note_refused(&current, &error);
                Ok(again)
            }
            _ => Err(error),
        }
    }

    async fn open_with(&self, credentials: Arc<Credentials>, address: Address) -> Result<Session> {
        Session::open(&self.plan, credentials, address, &self.probe_key).await
    }

    /// Makes calls on this session from now on.
    pub(super) fn close(&self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        if !self.plan.in_cluster {
            self.plan.checks.start();
        }
        self.note_session(&session);
        CallCounters::count(&self.plan.counters.connects);
        let since = self.breaker.close(session.clone(), Instant::now());
        self.closed.notify_waiters();
        let (redis, server) = (&self.plan.options.target, &session.address);
        if let Some(since) = since {
            let down = since.elapsed().as_secs_f64();
            info!(%redis, %server, down_seconds = down, "Redis is up");
        }
        session
    }

    fn note_session(&self, session: &Session) {
        let mut known = self.known();
        known.accepted = Some(session.credentials.clone());
        let before = known.address.replace(session.address.clone());
        if let Some(before) = before.filter(|before| *before != session.address) {
            self.plan.checks.forget(&before);
            known.left = Some((before, Instant::now()));
        }
        known.promoted = None;
        known.unusable = None;
    }

    /// Returns when this session can no longer be used.
    async fn watch(
        &self,
        session: &Arc<Session>,
        events: &mut mpsc::Receiver<SentinelEvent>,
        renewed: &mut watch::Receiver<()>,
    ) {
        let mut look_around = pin!(self.look_around(session));
        let mut read_times = pin!(self.read_times(session));
        loop {
            let finding = tokio::select! {
                () = self.opened.notified() => return,
                () = session.signals.lost() => {
                    let error = unreachable_because(&session.address, &"the connection was lost");
                    return self.trip(session, &error);
                }
                calls = session.signals.abandoned() => {
                    let time_out = self.plan.options.command_time_out;
                    (0..calls).for_each(|_| drop(self.late(session, time_out)));
                    None
                }
                Some(event) = events.recv() => self.consider(session, event).await,
                Ok(()) = renewed.changed() => Some(Finding::Renewed),
                () = &mut read_times => None,
                finding = &mut look_around => {
                    look_around.set(self.look_around(session));
                    Some(finding)
                }
            };
            let is_replaced = match finding {
                None => false,
                Some(Finding::Moved(address)) => self.move_to(session, address).await,
                // If it does not become the master, this one still is.
                Some(Finding::Promoted(address)) => self.hand_over(session, &address).await.is_ok(),
                Some(Finding::Renewed) => self.renew(session).await,
            };
            if is_replaced {
                return;
            }
        }
    }

    /// Checks the server periodically, until something has changed.
    async fn look_around(&self, session: &Arc<Session>) -> Finding {
        let options = &self.plan.options;
        let (mut checked, begin) = (Instant::now(), Instant::now());
        loop {
            sleep(self.period()).await;
            if checked.elapsed() >= options.check_interval {
                checked = Instant::now();
                if let Some(info) = session.memory(options.connect_time_out).await {
                    let policy = Info(&info).eviction();
                    self.plan.checks.note_eviction(&session.address, policy);
                }
            }
            if let Some(address) = self.moved(session).await {
                return Finding::Moved(address);
            }
            let is_old = !Arc::ptr_eq(&session.credentials, &self.plan.credentials.current());
            if is_old && begin.elapsed() >= TRY_AGAIN {
                return Finding::Renewed;
            }
        }
    }

    /// Reads the server's time for ever, if no other call has told it lately: those that tell it come
    /// once in a period, and a little later than that.
    async fn read_times(&self, session: &Arc<Session>) {
        let (period, mut begin) = (self.period(), Instant::now());
        loop {
            let told = self.known().clock.last().map_or(begin, |last| last.max(begin));
            let due = told + period + period / 5;
            if due > Instant::now() {
                sleep_until(due).await;
            } else {
                self.read_time(session).await;
                begin = Instant::now();
            }
        }
    }

    fn period(&self) -> Duration {
        LOOK_AROUND.min(self.plan.options.check_interval)
    }

    /// Reads the server's time, until it answers: a silent path is an outage also if nobody calls.
    async fn read_time(&self, session: &Arc<Session>) {
        let time_out = self.plan.options.connect_time_out;
        loop {
            match session.time(time_out).await {
                Ok(sample) => {
                    self.breaker.answered();
                    self.note_time(&session.address, sample);
                    return;
                }
                Err(error) if error.is_timeout() => drop(self.late(session, time_out)),
                // A lost connection is noticed by itself.
                Err(_) => return,
            }
        }
    }

    /// Replaces a session by one with the current credentials. If they are rejected, it stays.
    /// Returns whether it was replaced.
    async fn renew(&self, session: &Arc<Session>) -> bool {
        let current = self.plan.credentials.current();
        if Arc::ptr_eq(&session.credentials, &current) {
            return false;
        }
        let server = &session.address;
        match self.open_with(current.clone(), server.clone()).await {
            Ok(next) => {
                self.close(next);
                info!(%server, "reconnected with new credentials");
                true
            }
            Err(error) => {
                self.note_refused(&current, &error);
                false
            }
        }
    }

    /// Logs once that new credentials are rejected.
    fn note_refused(&self, credentials: &Arc<Credentials>, error: &BackendError) {
        let before = self.known().refused.replace(credentials.clone());
        if !before.is_some_and(|before| Arc::ptr_eq(&before, credentials)) {
            warn!(%error, "Redis refused new credentials; keeping the previous ones");
        }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, LinkState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LinkCore {
    fn drop(&mut self) {
        if let Some(address) = &self.known().address {
            self.plan.checks.forget(address);
        }
    }
}

/// True if an operator has to change credentials or configuration.
fn is_about_us(error: &BackendError) -> bool {
    matches!(error.fault(), Fault::Refused | Fault::Misconfigured)
}
