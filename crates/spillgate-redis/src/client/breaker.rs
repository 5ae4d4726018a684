use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::backend::BackendError;

/// Calls in a row that must time out before Redis counts as down. One may be a slow
/// command of somebody else's.
const STRIKES: u32 = 3;

/// Keeps calls away from Redis that is down: they fail at once instead of waiting for a
/// time-out each.
///
/// It is closed while there is a session `S` to make calls on, and open otherwise. What comes of
/// a call counts only against the session that it was made on: those of an earlier one tell
/// nothing of the next.
#[derive(Debug)]
pub(super) struct Breaker<S> {
    state: ArcSwap<BreakerState<S>>,
    strikes: AtomicU32,
    /// Held by whoever replaces the state.
    changing: Mutex<()>,
}

/// Whether calls are made.
#[derive(Debug)]
pub(super) enum BreakerState<S> {
    /// They are, on this.
    Closed {
        /// On what.
        session: Arc<S>,
        /// Since when.
        since: Instant,
    },
    /// They are not.
    Open {
        /// What was wrong when it was last tried.
        error: BackendError,
        /// Since when.
        since: Instant,
    },
}

impl<S> Breaker<S> {
    /// One that is open until there is a session.
    pub(super) fn open(error: BackendError, now: Instant) -> Self {
        Self {
            state: ArcSwap::from_pointee(BreakerState::Open { error, since: now }),
            strikes: AtomicU32::new(0),
            changing: Mutex::new(()),
        }
    }

    /// How it stands.
    pub(super) fn state(&self) -> Arc<BreakerState<S>> {
        self.state.load_full()
    }

    /// What calls are made on now, if they are.
    pub(super) fn session(&self) -> Option<Arc<S>> {
        match &**self.state.load() {
            BreakerState::Closed { session, .. } => Some(session.clone()),
            BreakerState::Open { .. } => None,
        }
    }

    /// Notes that a call was answered.
    pub(super) fn answered(&self) {
        // A store only where it changes something, so that calls do not fight for the line.
        if self.strikes.load(Ordering::Relaxed) > 0 {
            self.strikes.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that a call on this session timed out. True if that opened the breaker.
    pub(super) fn timed_out(&self, session: &Arc<S>, error: &BackendError, now: Instant) -> bool {
        self.is_current(session)
            && self.strikes.fetch_add(1, Ordering::Relaxed) + 1 >= STRIKES
            && self.trip(session, error, now)
    }

    /// Notes that this session is of no more use. True if that opened the breaker.
    pub(super) fn trip(&self, session: &Arc<S>, error: &BackendError, now: Instant) -> bool {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = self.is_current(session);
        if is_current {
            self.state.store(Arc::new(BreakerState::Open { error: error.clone(), since: now }));
        }
        is_current
    }

    /// Notes what is wrong now, if it is still open.
    pub(super) fn still_open(&self, error: BackendError) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let BreakerState::Open { since, .. } = **self.state.load() {
            self.state.store(Arc::new(BreakerState::Open { error, since }));
        }
    }

    /// Lets calls through to a new session. Tells since when none were.
    pub(super) fn close(&self, session: Arc<S>, now: Instant) -> Option<Instant> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.strikes.store(0, Ordering::Relaxed);
        let before = self.state.swap(Arc::new(BreakerState::Closed { session, since: now }));
        match &*before {
            BreakerState::Open { since, .. } => Some(*since),
            BreakerState::Closed { .. } => None,
        }
    }

    fn is_current(&self, session: &Arc<S>) -> bool {
        matches!(&**self.state.load(), BreakerState::Closed { session: current, .. }
            if Arc::ptr_eq(current, session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Fault;

    fn error(text: &str) -> BackendError {
        BackendError::new(Fault::TimedOut, text)
    }

    fn closed() -> (Breaker<u8>, Arc<u8>) {
        let breaker = Breaker::open(error("not yet"), Instant::now());
        let session = Arc::new(1);
        assert!(breaker.close(session.clone(), Instant::now()).is_some());
        (breaker, session)
    }

    #[test]
    fn it_opens_after_time_outs_in_a_row() {
        let (breaker, session) = closed();
        let slow = error("slow");
        for _ in 0..10 {
            assert!(!breaker.timed_out(&session, &slow, Instant::now()));
            assert!(!breaker.timed_out(&session, &slow, Instant::now()));
            breaker.answered();
        }
        for _ in 1..STRIKES {
            assert!(!breaker.timed_out(&session, &slow, Instant::now()));
        }
        assert!(breaker.timed_out(&session, &slow, Instant::now()));
        assert!(breaker.session().is_none());
        assert!(!breaker.timed_out(&session, &slow, Instant::now()), "only once");
    }

    #[test]
    fn it_opens_at_once_when_a_session_is_of_no_more_use() {
        let (breaker, session) = closed();
        let now = Instant::now();
        assert!(breaker.trip(&session, &error("lost"), now));
        assert!(!breaker.trip(&session, &error("lost"), now), "only once");
        breaker.still_open(error("refused"));
        assert!(matches!(&*breaker.state(), BreakerState::Open { error: why, since }
            if *why == error("refused") && *since == now));
    }

    #[test]
    fn what_an_earlier_session_did_counts_no_more() {
        let (breaker, first) = closed();
        assert!(breaker.trip(&first, &error("lost"), Instant::now()));
        let second = Arc::new(1);
        breaker.close(second.clone(), Instant::now());
        for _ in 0..10 {
            assert!(!breaker.timed_out(&first, &error("slow"), Instant::now()));
        }
        assert!(!breaker.trip(&first, &error("lost"), Instant::now()));
        breaker.still_open(error("late news"));
        assert!(breaker.session().is_some_and(|now| Arc::ptr_eq(&now, &second)));
    }
}
