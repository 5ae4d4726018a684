use std::sync::Arc;

use spillgate_policy::store::Store;
use spillgate_policy::{Gate, Outcome};

/// An allowed outcome that has to [wait](Outcome::wait) its turn under a shaper. Dropped before,
/// since the client went away, it gives its turn back.
#[derive(Debug)]
#[must_use = "dropped, it gives the turn back"]
pub struct Delayed<S: Store> {
    gate: Arc<Gate<S>>,
    outcome: Option<Outcome<'static>>,
}

impl<S: Store> Delayed<S> {
    pub(crate) fn new(gate: Arc<Gate<S>>, outcome: Option<Outcome<'static>>) -> Self {
        Self { gate, outcome }
    }

    /// Waits until the request may go ahead. From then on its turn is not given back.
    pub async fn wait(mut self) -> Option<Outcome<'static>> {
        let wait = self.outcome.as_ref().map(Outcome::wait).unwrap_or_default();
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
            self.outcome.iter_mut().for_each(|outcome| self.gate.start(outcome));
        }
        self.outcome.take()
    }
}

impl<S: Store> Drop for Delayed<S> {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome.take().filter(|outcome| !outcome.wait().is_zero()) {
            self.gate.cancel(outcome);
        }
    }
}
