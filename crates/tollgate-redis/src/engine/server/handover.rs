use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::session::Session;

/// Whether a session's calls are about to be made on another.
pub(super) struct Handover {
    /// True unless the state is `No`: so that calls read no more than this.
    is_under_way: AtomicBool,
    state: watch::Sender<State>,
}

#[derive(Clone)]
enum State {
    No,
    Waiting,
    To(Arc<Session>),
}

/// Makes calls wait, until they are handed over or this is dropped.
pub(super) struct Hold<'a>(&'a Handover);

impl Handover {
    pub(super) fn is_under_way(&self) -> bool {
        // Relaxed: a call that sees it late is one that was made a moment before.
        self.is_under_way.load(Ordering::Relaxed)
    }

    pub(super) fn hold(&self) -> Hold<'_> {
        self.set(State::Waiting);
        Hold(self)
    }

    /// Waits for the session that takes over; `None` if none does.
    pub(super) async fn successor(&self) -> Option<Arc<Session>> {
        let mut states = self.state.subscribe();
        let is_decided = |state: &State| !matches!(state, State::Waiting);
        match states.wait_for(is_decided).await.as_deref() {
            Ok(State::To(session)) => Some(session.clone()),
            _ => None,
        }
    }

    fn set(&self, state: State) {
        self.is_under_way.store(!matches!(state, State::No), Ordering::Relaxed);
        self.state.send_replace(state);
    }
}

impl Hold<'_> {
    /// Lets calls go on, on another session.
    pub(super) fn hand_over(self, session: Arc<Session>) {
        self.0.set(State::To(session));
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if matches!(*self.0.state.borrow(), State::Waiting) {
            self.0.set(State::No);
        }
    }
}

impl Default for Handover {
    fn default() -> Self {
        Self { is_under_way: AtomicBool::new(false), state: watch::Sender::new(State::No) }
    }
}
