use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// Whether a session's calls are about to be made on another.
pub(super) struct Handover {
    /// True unless the state is `No`: so that calls read no more than this.
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

/// Makes calls wait, until they are handed over or this is dropped.
pub(super) struct Hold<'a>(&'a Handover);

impl Handover {
    pub(super) fn is_under_way(&self) -> bool {
        // Relaxed: a call that sees it late is one that was made a moment before.
        self.is_under_way.load(Ordering::Relaxed)
    }

    pub(super) fn hold(&self) -> Hold<'_> {
        self.set(HandoverState::Waiting);
        Hold(self)
    }

    /// Waits until another session has taken over, or none will.
    pub(super) async fn decided(&self) {
        // It cannot fail: the sender is here.
        let _ = self.state.subscribe().wait_for(|state| *state != HandoverState::Waiting).await;
    }

    fn set(&self, state: HandoverState) {
        self.is_under_way.store(state != HandoverState::No, Ordering::Relaxed);
        self.state.send_replace(state);
    }
}

impl Hold<'_> {
    /// Lets calls go on, on another session, which has taken over before.
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
