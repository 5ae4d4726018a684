//! Debits in Redis what nodes admitted during an outage.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::core::StoreCore;
use crate::Name;
use crate::backend::{Backend, BackendError, Fault, Result};

/// How often callers are debited that do not call again.
const INTERVAL: Duration = Duration::from_millis(100);

impl<B: Backend> StoreCore<B> {
    /// Debits a caller by what a share admitted, before Redis is asked about it.
    ///
    /// A debit that is not answered is repeated, and may count twice.
    pub(super) async fn report(&self, name: Name) -> Result<()> {
        match self.unreported.turn(name) {
            None => Ok(()),
            // Usually there is no debt.
            Some(turn) => Box::pin(self.report_in_turn(name, &turn)).await,
        }
    }

    async fn report_in_turn(&self, name: Name, turn: &tokio::sync::Mutex<()>) -> Result<()> {
        let Ok(_turn) = turn.try_lock() else {
            // Another call has just tried: do not retry at once.
            drop(turn.lock().await);
            let is_done = self.unreported.turn(name).is_none();
            let late = "what a caller spent during an outage is not debited yet";
            return is_done.then_some(()).ok_or_else(|| BackendError::new(Fault::TimedOut, late));
        };
        // More may be admitted meanwhile.
        while let Some(debt) = self.unreported.debt(name) {
            let owed = debt.owed(self.local());
            let debited = match owed {
                0 => Ok(()),
                _ => self.debit(debt.caller.clone(), owed).await.map(|_| ()),
            };
            match debited {
                // Unreadable until it is reset.
                Err(why) if why.is_unreadable() => {
                    self.unreported.forget(name);
                    return Err(why);
                }
                debited => debited?,
            }
            self.unreported.subtract(&debt.caller, debt.tokens);
        }
        Ok(())
    }

    /// Debits all debts, if Redis answers. Returns whether none is left.
    pub(super) async fn report_all(self: &Arc<Self>) -> bool {
        loop {
            let before = self.unreported.len();
            let mut reporting = JoinSet::new();
            for name in self.unreported.some() {
                let core = Arc::clone(self);
                reporting.spawn(async move { core.report(name).await });
            }
            let answers = reporting.join_all().await;
            let is_answered = |answer: &Result<()>| {
                answer.as_ref().map_or_else(BackendError::is_unreadable, |()| true)
            };
            if !answers.iter().all(is_answered) || self.unreported.len() >= before {
                return self.unreported.len() == 0;
            }
        }
    }

    /// Debits all debts in the background, as soon as Redis answers.
    pub(super) fn report_later(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !self.unreported.is_reporting.swap(true, Ordering::AcqRel) {
            runtime.spawn(report_until_done(Reporting(Arc::downgrade(self))));
        }
    }
}

/// Held by the one background task; when it ends, another may start.
struct Reporting<B: Backend>(Weak<StoreCore<B>>);

impl<B: Backend> Drop for Reporting<B> {
    fn drop(&mut self) {
        if let Some(core) = self.0.upgrade() {
            core.unreported.is_reporting.store(false, Ordering::Release);
        }
    }
}

async fn report_until_done<B: Backend>(reporting: Reporting<B>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(core) = reporting.0.upgrade() else { return };
        if core.report_all().await {
            drop(reporting);
            // A debt recorded just before started no other task.
            if core.unreported.len() > 0 {
                core.report_later();
            }
            return;
        }
    }
}
