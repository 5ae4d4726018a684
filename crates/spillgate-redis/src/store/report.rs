//! Charging at Redis what was admitted while it could not be asked.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::core::StoreCore;
use crate::Name;
use crate::backend::{Backend, BackendError, Fault};

/// How often it is tried to charge those who do not come again.
const INTERVAL: Duration = Duration::from_millis(100);

impl<B: Backend> StoreCore<B> {
    /// Charges a caller for what it was let through by a share, if it was: Redis must not be
    /// asked about it before.
    ///
    /// A charge whose answer does not come is made again, so that it may count twice.
    pub(super) async fn report(&self, name: Name) -> Result<(), BackendError> {
        match self.unreported.turn(name) {
            None => Ok(()),
            // Mostly nobody owes anything: then nothing of this is needed.
            Some(turn) => Box::pin(self.report_in_turn(name, &turn)).await,
        }
    }

    async fn report_in_turn(
        &self,
        name: Name,
        turn: &tokio::sync::Mutex<()>,
    ) -> Result<(), BackendError> {
        let Ok(_turn) = turn.try_lock() else {
            // If somebody else has tried and failed, it makes no sense to try again at once.
            drop(turn.lock().await);
            let is_done = self.unreported.turn(name).is_none();
            let late = "what a caller has spent in an outage could not be charged yet";
            return is_done.then_some(()).ok_or_else(|| BackendError::new(Fault::TimedOut, late));
        };
        // More may be let through while it is charged.
        while let Some(debt) = self.unreported.debt(name) {
            let owed = debt.owed(self.local());
            let charged = match owed {
                0 => Ok(()),
                _ => self.debit(debt.caller.clone(), owed).await.map(|_| ()),
            };
            match charged {
                // Until it is reset, nobody knows what such a caller has spent.
                Err(why) if why.is_unreadable() => {
                    self.unreported.forget(name);
                    return Err(why);
                }
                charged => charged?,
            }
            self.unreported.subtract(&debt.caller, debt.tokens);
        }
        Ok(())
    }

    /// Charges everyone who owes something, if Redis answers. Tells whether nobody is left.
    pub(super) async fn report_all(self: &Arc<Self>) -> bool {
        loop {
            let before = self.unreported.len();
            let mut reporting = JoinSet::new();
            for name in self.unreported.some() {
                let core = Arc::clone(self);
                reporting.spawn(async move { core.report(name).await });
            }
            let answers = reporting.join_all().await;
            let is_answered = |answer: &Result<(), BackendError>| {
                answer.as_ref().map_or_else(BackendError::is_unreadable, |()| true)
            };
            if !answers.iter().all(is_answered) || self.unreported.len() >= before {
                return self.unreported.len() == 0;
            }
        }
    }

    /// Charges everyone who owes something in the background, as soon as Redis answers.
    pub(super) fn report_later(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !self.unreported.is_reporting.swap(true, Ordering::AcqRel) {
            runtime.spawn(report_until_done(Reporting(Arc::downgrade(self))));
        }
    }
}

/// What the one task has that charges in the background; however that ends, another can begin.
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
            // Who came before that has started no other task.
            if core.unreported.len() > 0 {
                core.report_later();
            }
            return;
        }
    }
}
