use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::backend::BackendError;

/// A call in flight about one caller. Other requests wait for it.
#[derive(Clone, Debug)]
pub(crate) struct PendingCall(Arc<CallCell>);

/// Notifies those who wait for a call, also when it is dropped.
#[derive(Debug)]
pub(crate) struct CallNotifier(Arc<CallCell>);

/// Waiters are woken in order, so that simulations can be replayed.
#[derive(Debug, Default)]
struct CallCell {
    /// The failure, if it failed.
    outcome: OnceLock<Option<BackendError>>,
    waiting: Notify,
}

impl PendingCall {
    pub(crate) fn begin() -> (Self, CallNotifier) {
        let cell = Arc::new(CallCell::default());
        (Self(Arc::clone(&cell)), CallNotifier(cell))
    }

    /// True until it has an outcome.
    pub(crate) fn is_under_way(&self) -> bool {
        self.0.outcome.get().is_none()
    }

    /// Waits until it is answered.
    pub(crate) async fn outcome(self) -> Result<(), BackendError> {
        loop {
            // Registered before the check, so that no notification is missed.
            let notified = self.0.waiting.notified();
            if let Some(outcome) = self.0.outcome.get() {
                return outcome.clone().map_or(Ok(()), Err);
            }
            notified.await;
        }
    }
}

impl CallNotifier {
    /// Sets the outcome, once, and wakes those who wait.
    pub(crate) fn notify(&self, failure: Option<BackendError>) {
        let _ = self.0.outcome.set(failure);
        self.0.waiting.notify_waiters();
    }
}

impl Drop for CallNotifier {
    fn drop(&mut self) {
        self.notify(None);
    }
}
