use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// Whether the calls of a session are about to move to another.
pub(super) struct Handover {
    /// True unless the state is `No`: all that calls read.
    is_under_way: AtomicBool,
    state: watch::Sender<HandoverState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandoverState {
    No,
    Waiting,
    /// Another session has taken over.
    Done,
}

/// Holds calls back until they are handed over or this is dropped.
pub(super) struct Hold<'a>(&'a Handover);

impl Handover {
    pub(super) fn is_under_way(&self) -> bool {
        // Relaxed: a call that sees it late was made a moment before.
        self.is_under_way.load(Ordering::Relaxed)
    }

    pub(super) fn hold(&self) -> Hold<'_> {
        self.set(HandoverState::Waiting);
        Hold(self)
    }

    /// Waits until another session has taken over, or none will.
    pub(super) async fn decided(&self) {
        // Infallible: the sender is here.
        let _ = self.state.subscribe().wait_for(|state| *state != HandoverState::Waiting).await;
    }

    fn set(&self, state: HandoverState) {
        self.is_under_way.store(state != HandoverState::No, Ordering::Relaxed);
        self.state.send_replace(state);
    }
}

impl Hold<'_> {
    /// Releases calls to the session that has taken over.
    pub(super) fn hand_over(self) {
        self.0.set(HandoverState::Done);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let is_decided = *self.0.state.borrow() != HandoverState::Waiting;
        if !is_decided {
            self.0.set(HandoverState::No);
        }
    }
}

impl Default for Handover {
    fn default() -> Self {
        Self { is_under_way: AtomicBool::new(false), state: watch::Sender::new(HandoverState::No) }
    }
}
