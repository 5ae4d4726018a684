//! Follows failovers, as Sentinels announce them or answer when asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::address::{Address, Target};
use super::link::LinkCore;
use super::session::Session;
use super::subscription::SentinelEvent;
use super::supervisor::{Finding, LinkState};
use crate::backend::{BackendError, Fault, Result};

/// The longest that calls wait for a new master. Sentinels promote a replica within a tenth of a
/// second.
const HANDOVER: Duration = Duration::from_secs(1);

/// How often a replica about to become the master is tried.
const PACE: Duration = Duration::from_millis(20);

/// How long Sentinels may disagree after a failover.
const SPREAD: Duration = Duration::from_secs(10);

impl LinkState {
    /// True if this master was left a moment ago.
    pub(super) fn has_left(&self, master: &Address) -> bool {
        let left = self.left.as_ref();
        left.is_some_and(|(left, at)| left == master && at.elapsed() < SPREAD)
    }
}

impl LinkCore {
    /// Another server to use, although this one still answers; but not one that was left a moment
    /// ago: not all Sentinels learn of a failover at once.
    pub(super) async fn moved(&self, session: &Session) -> Option<Address> {
        let Target::Sentinel { .. } = self.target else { return None };
        let credentials = self.plan.credentials.refresh().await;
        let present = Some(&session.address);
        let found = self.target.find(&self.plan, &credentials, present).await.ok()?;
        let address = found.into_iter().next()?;
        let mut known = self.known();
        if address == session.address {
            known.unusable = None;
            return None;
        }
        (!known.has_left(&address)).then_some(address)
    }

    /// Handles an event. It may be stale, so Sentinels are asked for the master; a promotion counts
    /// only if it replaces this one.
    pub(super) async fn consider(
        &self,
        session: &Session,
        event: SentinelEvent,
    ) -> Option<Finding> {
        match event {
            SentinelEvent::Switched => self.moved(session).await.map(Finding::Moved),
            SentinelEvent::Promotion { from, to } => {
                (from == session.address).then_some(Finding::Promoted(to))
            }
        }
    }

    /// Handles an event while there is no session.
    pub(super) fn note(&self, event: SentinelEvent) {
        let mut known = self.known();
        if let SentinelEvent::Promotion { from, to } = event
            && known.address == Some(from)
        {
            known.promoted = Some((to, Instant::now()));
        }
    }

    /// The replica about to become the master, if announced lately.
    pub(super) fn promoted(&self) -> Option<Address> {
        let promoted = self.known().promoted.clone();
        promoted.filter(|(_, since)| since.elapsed() < SPREAD).map(|(address, _)| address)
    }

    /// Moves to another master once it can be used. Returns whether it could. Calls are held back
    /// only for the first attempt: Sentinels may name an unusable master for long.
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
                    warn!(%error, %master, "Sentinels name a master that cannot be used; \
                           keeping the current one");
                }
                false
            }
        }
    }

    /// Holds calls back until another server accepts them, so that none is counted on the old
    /// master, and hands them over.
    pub(super) async fn hand_over(&self, session: &Arc<Session>, to: &Address) -> Result<()> {
        let (hold, begin) = (session.handover.hold(), Instant::now());
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

    /// Makes calls on the session of the new master.
    fn take_over(&self, session: &Session, next: Session, held: Duration) {
        let next = self.close(next);
        let (redis, from, to) = (&self.plan.options.target, &session.address, &next.address);
        let held = held.as_secs_f64();
        info!(%redis, %from, %to, held_seconds = held, "failover: using the new master");
    }
}
