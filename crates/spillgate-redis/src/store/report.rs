//! Tells Redis what it could not be asked for: debits what nodes admitted during an outage, and makes
//! refunds that were refused.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use spillgate::algorithm::{AnyAlgorithm, Word};
use tokio::runtime::Handle;

use super::core::{Caller, StoreCore};
use super::refunds::Refund;
use crate::Name;
use crate::backend::{Backend, Fault, Result};
use crate::flow::{inherit_client, of_limit};

/// How often callers are debited that do not call again, and refunds are tried.
const INTERVAL: Duration = Duration::from_millis(100);

/// The longest pause while Redis is overloaded: each refused call doubles it.
const LONGEST: Duration = Duration::from_millis(800);

impl<B: Backend> StoreCore<B> {
    /// Debits a caller by what a share admitted, before Redis is asked about it.
    ///
    /// One task does so for all who wait: a debit whose answer nobody waits for any more counts
    /// once. One that is not answered is repeated, and may count twice.
    pub(super) async fn report(self: &Arc<Self>, name: Name) -> Result<()> {
        let report = self.unreported.report(name, |notifier| {
            let core = Arc::clone(self);
            tokio::spawn(inherit_client(async move {
                let failure = core.debit_debts(name).await.err();
                notifier.notify(failure);
            }));
        });
        // Usually there is no debt.
        match report {
            None => Ok(()),
            Some(report) => Box::pin(report.outcome()).await,
        }
    }

    async fn debit_debts(self: &Arc<Self>, name: Name) -> Result<()> {
        // More may be admitted meanwhile.
        while let Some(debt) = self.unreported.next_debt(name) {
            let owed = debt.owed(self.local());
            let debited = match owed {
                0 => Ok(()),
                _ => self.debit(debt.caller.clone(), owed).await.map(|_| ()),
            };
            if let Err(why) = debited {
                // Unreadable until it is reset.
                if why.is_unreadable() {
                    self.unreported.forget(name);
                }
                self.unreported.end_report(name);
                return Err(why);
            }
            self.unreported.subtract(&debt.caller, debt.tokens);
        }
        Ok(())
    }

    /// Debits all debts and makes all refunds, as far as Redis answers.
    pub(super) async fn report_all(self: &Arc<Self>) -> Result<()> {
        let debited = self.debit_all().await;
        self.refund_all().await.and(debited)
    }

    async fn debit_all(self: &Arc<Self>) -> Result<()> {
        loop {
            let before = self.unreported.len();
            let some = self.unreported.some();
            let answers = join_all(some.into_iter().map(|name| self.report(name))).await;
            let failed =
                |answer: &Result<()>| answer.as_ref().is_err_and(|why| !why.is_unreadable());
            if let Some(failure) = answers.into_iter().find(failed) {
                return failure;
            }
            if self.unreported.len() >= before {
                return Ok(());
            }
        }
    }

    async fn refund_all(self: &Arc<Self>) -> Result<()> {
        let _turn = self.refunds.turn.lock().await;
        loop {
            let some = self.refunds.take_some();
            if some.is_empty() {
                return Ok(());
            }
            let made = join_all(some.into_iter().map(|refund| self.refund(refund))).await;
            made.into_iter().collect::<Result<()>>()?;
        }
    }

    /// Makes a refund, unless Redis is certainly not asked: then it waits again.
    async fn refund(self: &Arc<Self>, refund: Refund) -> Result<()> {
        let Refund { caller, spent, reserved, actual } = refund.clone();
        let limit = caller.limit.id();
        let made = async {
            self.report(caller.name).await.map_err(|why| (why, true))?;
            let settled = self.settle(caller, spent, reserved, actual).await;
            settled.map_err(|why| (why.clone(), why.is_unmade()))
        };
        match of_limit(limit, made).await {
            Ok(_) => Ok(()),
            Err((why, true)) => {
                self.refunds.add(refund);
                Err(why)
            }
            Err((_, false)) => {
                self.refunds.note_dropped(&refund);
                Ok(())
            }
        }
    }

    /// Records an admitted cost that Redis does not know of, with the word of the share after it.
    pub(super) fn add_debt(
        self: &Arc<Self>,
        caller: &Caller,
        tokens: u64,
        spent: (AnyAlgorithm, Word),
    ) {
        if tokens > 0 {
            self.unreported.add(caller, tokens, spent, self.local());
            self.report_later();
        }
    }

    /// Debits all debts and makes all refunds in the background, as soon as Redis answers.
    pub(super) fn report_later(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !self.unreported.is_reporting.swap(true, Ordering::AcqRel) {
            runtime.spawn(report_until_done(Reporting(Arc::downgrade(self))));
        }
    }

    fn has_reported(&self) -> bool {
        self.unreported.len() == 0 && self.refunds.is_empty()
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
    let mut pause = INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let Some(core) = reporting.0.upgrade() else { return };
        let reported = core.report_all().await;
        if core.has_reported() {
            drop(reporting);
            // What was recorded just before started no other task.
            if !core.has_reported() {
                core.report_later();
            }
            return;
        }
        let is_overloaded = reported.is_err_and(|why| why.fault() == Fault::Overloaded);
        pause = if is_overloaded { LONGEST.min(pause * 2) } else { INTERVAL };
    }
}
