use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use spillgate::Decision;
use tokio::sync::Notify;

use crate::backend::BackendError;
use crate::effective_quota::EffectiveQuota;

/// A take in flight. There is at most one per caller: other calls wait for it.
#[derive(Clone, Debug)]
pub(super) struct PendingTake(Arc<TakeCell>);

/// Notifies those who wait for a take, also when it is dropped.
#[derive(Debug)]
pub(super) struct TakeNotifier(Arc<TakeCell>);

/// Waiters are woken in order, so that simulations can be replayed.
#[derive(Debug, Default)]
struct TakeCell {
    outcome: OnceLock<TakeOutcome>,
    waiting: Notify,
}

/// A take to be made.
#[derive(Debug)]
pub(super) struct TakeRequest<C> {
    pub(super) caller: C,
    pub(super) effective: EffectiveQuota,
    /// As many times this as available, up to `most`.
    pub(super) least: u64,
    pub(super) most: u64,
    /// The number of nodes.
    pub(super) nodes: NonZeroU32,
    /// The cost of the call that waits for it, if any.
    pub(super) cost: Option<u64>,
    pub(super) notifier: TakeNotifier,
}

#[derive(Clone, Debug)]
pub(super) enum TakeOutcome {
    /// The call that it was made for is decided.
    Decided(Decision),
    /// Those who wait may look again.
    Again,
    /// Redis did not answer.
    Failed(BackendError),
}

impl PendingTake {
    pub(super) fn begin() -> (Self, TakeNotifier) {
        let cell = Arc::new(TakeCell::default());
        (Self(Arc::clone(&cell)), TakeNotifier(cell))
    }

    /// True until it has an outcome.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.outcome.get().is_none()
    }

    /// True if this notifier belongs to it.
    pub(super) fn is_of(&self, notifier: &TakeNotifier) -> bool {
        Arc::ptr_eq(&self.0, &notifier.0)
    }

    /// Waits for the outcome.
    pub(super) async fn outcome(self) -> TakeOutcome {
        loop {
            // Registered before the check, so that no notification is missed.
            let notified = self.0.waiting.notified();
            if let Some(outcome) = self.0.outcome.get() {
                return outcome.clone();
            }
            notified.await;
        }
    }
}

impl TakeNotifier {
    /// Sets the outcome, once, and wakes those who wait.
    pub(super) fn notify(&self, outcome: TakeOutcome) {
        let _ = self.0.outcome.set(outcome);
        self.0.waiting.notify_waiters();
    }
}

impl Drop for TakeNotifier {
    fn drop(&mut self) {
        self.notify(TakeOutcome::Again);
    }
}
