use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::backend::BackendError;

/// Consecutive timeouts before Redis counts as down. A single one may be somebody's slow command.
const STRIKES: u32 = 3;

/// A circuit breaker: while Redis is down, calls fail at once.
///
/// It is closed while there is a session `S`, and open otherwise. Failures count only against the
/// session that they happened on.
#[derive(Debug)]
pub(super) struct Breaker<S> {
    state: ArcSwap<BreakerState<S>>,
    strikes: AtomicU32,
    /// Held while the state is replaced.
    changing: Mutex<()>,
}

#[derive(Debug)]
pub(super) enum BreakerState<S> {
    /// Calls are made.
    Closed {
        session: Arc<S>,
        /// Since when.
        since: Instant,
    },
    /// Calls fail at once.
    Open {
        /// The error of the last attempt.
        error: BackendError,
        /// Since when.
        since: Instant,
    },
}

impl<S> Breaker<S> {
    /// Open until there is a session.
    pub(super) fn open(error: BackendError, now: Instant) -> Self {
        Self {
            state: ArcSwap::from_pointee(BreakerState::Open { error, since: now }),
            strikes: AtomicU32::new(0),
            changing: Mutex::new(()),
        }
    }

    /// The current state.
    pub(super) fn state(&self) -> Arc<BreakerState<S>> {
        self.state.load_full()
    }

    /// The session, if closed.
    pub(super) fn session(&self) -> Option<Arc<S>> {
        match &**self.state.load() {
            BreakerState::Closed { session, .. } => Some(session.clone()),
            BreakerState::Open { .. } => None,
        }
    }

    /// Notes a reply.
    pub(super) fn answered(&self) {
        // Writes only changes, to avoid contention on the cache line.
        if self.strikes.load(Ordering::Relaxed) > 0 {
            self.strikes.store(0, Ordering::Relaxed);
        }
    }

    /// Notes a timeout on this session. True if that opened the breaker.
    pub(super) fn timed_out(&self, session: &Arc<S>, error: &BackendError, now: Instant) -> bool {
        self.is_current(session)
            && self.strikes.fetch_add(1, Ordering::Relaxed) + 1 >= STRIKES
            && self.trip(session, error, now)
    }

    /// Notes that this session is unusable. True if that opened the breaker.
    pub(super) fn trip(&self, session: &Arc<S>, error: &BackendError, now: Instant) -> bool {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = self.is_current(session);
        if is_current {
            self.state.store(Arc::new(BreakerState::Open { error: error.clone(), since: now }));
        }
        is_current
    }

    /// Updates the error while open.
    pub(super) fn still_open(&self, error: BackendError) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let BreakerState::Open { since, .. } = **self.state.load() {
            self.state.store(Arc::new(BreakerState::Open { error, since }));
        }
    }

    /// Closes with a new session. Returns since when it was open.
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
