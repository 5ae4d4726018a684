//! Going along with failovers: as Sentinels announce them, or as they answer when they are asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::address::Address;
use super::discovery::Discovery;
use super::link::LinkCore;
use super::session::Session;
use super::subscription::SentinelEvent;
use super::supervisor::{Finding, LinkState};
use crate::backend::{BackendError, Fault};

/// How long calls wait for another master at most. Sentinels take a tenth of a second to promote a
/// replica.
const HANDOVER: Duration = Duration::from_secs(1);

/// How often a replica that is to become the master is tried, by each node.
const PACE: Duration = Duration::from_millis(20);

/// For how long a Sentinel may not know yet what another has told.
const SPREAD: Duration = Duration::from_secs(10);

impl LinkState {
    /// True if a master was left a moment ago for another one.
    pub(super) fn has_left(&self, master: &Address) -> bool {
        let left = self.left.as_ref();
        left.is_some_and(|(left, at)| left == master && at.elapsed() < SPREAD)
    }
}

impl LinkCore {
    /// Tells if another server is to be used by now, although this one still answers. One that
    /// was left a moment ago is not: not all Sentinels hear of a failover at once.
    pub(super) async fn moved(&self, session: &Session) -> Option<Address> {
        // Each time is another connection.
        let credentials = match self.discovery {
            Discovery::Fixed(_) => return None,
            Discovery::Sentinel(_) => self.plan.credentials.refresh().await,
        };
        let present = Some(&session.address);
        let found = self.discovery.find(&self.plan, &credentials, present).await.ok()?;
        let address = found.into_iter().next()?;
        let mut known = self.known();
        if address == session.address {
            known.unusable = None;
            return None;
        }
        (!known.has_left(&address)).then_some(address)
    }

    /// What follows from news. They may be late, so the Sentinels are asked whether there is
    /// another master; a promotion counts only if it is in place of this one.
    pub(super) async fn consider(&self, session: &Session, told: SentinelEvent) -> Option<Finding> {
        match told {
            SentinelEvent::Switched => self.moved(session).await.map(Finding::Moved),
            SentinelEvent::Promotion { from, to } => {
                (from == session.address).then_some(Finding::Promoted(to))
            }
        }
    }

    /// Notes news that come while there is no session.
    pub(super) fn note(&self, told: SentinelEvent) {
        let mut known = self.known();
        if let SentinelEvent::Promotion { from, to } = told
            && known.address == Some(from)
        {
            known.promoted = Some((to, Instant::now()));
        }
    }

    /// The replica that is to be the master, if that was told lately.
    pub(super) fn promoted(&self) -> Option<Address> {
        let promoted = self.known().promoted.clone();
        promoted.filter(|(_, told)| told.elapsed() < SPREAD).map(|(address, _)| address)
    }

    /// Goes to another master once that can be used. Tells whether it could. Calls are held back for
    /// it once: who names one that cannot be used may do so for long.
    pub(super) async fn move_to(&self, session: &Arc<Session>, to: Address) -> bool {
        let before = self.known().unusable.replace(to.clone());
        let is_new = before.as_ref() != Some(&to);
        let moved = if is_new {
            self.hand_over(session, &to).await
        } else {
            let opened = self.open(to.clone()).await;
            opened.map(|next| self.take_over(session, next, Duration::ZERO))
        };
        match moved {
            Ok(()) => true,
            Err(error) => {
                if is_new {
                    let master = &session.address;
                    warn!(%error, %master, "the Sentinels name a master that cannot be used: the \
                           one in use is kept");
                }
                false
            }
        }
    }

    /// Holds calls back until another server accepts them, so that none is counted where it will
    /// be forgotten, and makes them there.
    pub(super) async fn hand_over(
        &self,
        session: &Arc<Session>,
        to: &Address,
    ) -> Result<(), BackendError> {
        let (hold, begin) = (session.hold(), Instant::now());
        let mut problem = None;
        let opening = async {
            loop {
                match self.open(to.clone()).await {
                    Ok(next) => return next,
                    Err(error) => problem = Some(error),
                }
                sleep(PACE).await;
            }
        };
        let Ok(next) = timeout(HANDOVER, opening).await else {
            return Err(problem.unwrap_or_else(|| {
                let text = format!("{to} did not answer in {} ms", HANDOVER.as_millis());
                BackendError::new(Fault::Unreachable, text)
            }));
        };
        self.take_over(session, next, begin.elapsed());
        hold.hand_over();
        Ok(())
    }

    /// Makes calls on the session of another master.
    fn take_over(&self, session: &Session, next: Session, held: Duration) {
        let next = self.close(next);
        let (backend, from, to) = (&self.plan.options.target, &session.address, &next.address);
        let held = held.as_secs_f64();
        info!(%backend, %from, %to, held_seconds = held, "there is another master");
    }
}
