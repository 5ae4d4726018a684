//! Going along with failovers: as Sentinels announce them, or as they answer when they are asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::info;

use super::address::Address;
use super::keep::{Finding, Known};
use super::link::Core;
use super::session::Session;
use super::subscription::News;
use super::whereabouts::Whereabouts;
use crate::engine::{EngineError, Fault};

/// How long calls wait for a replica to become the master. Sentinels take a tenth of a second.
const HANDOVER: Duration = Duration::from_secs(1);

/// How often a replica that is to become the master is tried, by each node.
const PACE: Duration = Duration::from_millis(20);

/// For how long a Sentinel may not know yet what another has told.
const SPREAD: Duration = Duration::from_secs(10);

impl Core {
    /// Tells if another server is to be used by now, although this one still answers. One that
    /// was left a moment ago is not: not all Sentinels hear of a failover at once.
    pub(super) async fn moved(&self, session: &Session) -> Option<Address> {
        // Each time is another connection.
        let credentials = match self.whereabouts {
            Whereabouts::Fixed(_) => return None,
            Whereabouts::Asked(_) => self.plan.credentials.refresh().await,
        };
        let address = self.whereabouts.find(&self.plan, &credentials).await.ok()?;
        let is_left = |known: &Known| {
            known.left.as_ref().is_some_and(|(left, at)| *left == address && at.elapsed() < SPREAD)
        };
        (address != session.address && !is_left(&self.known())).then_some(address)
    }

    /// What follows from news. They may be late, so the Sentinels are asked whether there is
    /// another master; a promotion counts only if it is in place of this one.
    pub(super) async fn consider(&self, session: &Session, told: News) -> Option<Finding> {
        match told {
            News::Switched => self.moved(session).await.map(Finding::Moved),
            News::Promotion { from, to } => {
                (from == session.address).then_some(Finding::Promoted(to))
            }
        }
    }

    /// Notes news that come while there is no session.
    pub(super) fn note(&self, told: News) {
        let mut known = self.known();
        if let News::Promotion { from, to } = told
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

    /// Goes to another master. Tells if the session is of no more use.
    pub(super) async fn move_to(&self, session: &Arc<Session>, address: Address) -> bool {
        if self.hand_over(session, &address).await.is_err() {
            let text = format!("{} is no longer the master: {address} is", session.address);
            self.trip(session, &EngineError::new(Fault::Unready, text));
        }
        true
    }

    /// Holds calls back until another server accepts them, so that none is counted where it will
    /// be forgotten, and makes them there.
    pub(super) async fn hand_over(
        &self,
        session: &Arc<Session>,
        to: &Address,
    ) -> Result<(), EngineError> {
        let (hold, begin) = (session.hold(), Instant::now());
        loop {
            match self.open(to.clone()).await {
                Ok(next) => {
                    let held = begin.elapsed().as_secs_f64();
                    let (engine, from) = (&self.plan.options.target, &session.address);
                    info!(%engine, %from, %to, held_seconds = held, "there is another master");
                    hold.hand_over(self.close(next));
                    return Ok(());
                }
                Err(error) if begin.elapsed() > HANDOVER => return Err(error),
                Err(_) => sleep(PACE).await,
            }
        }
    }
}
