use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::adaptive::StepReason;
use spillgate::{Clock, Quota, SystemClock, Timestamp};
use spillgate_policy::AdaptiveState;
use tracing::{debug, info, warn};

use crate::denial_log::Throttle;

/// Logs how adaptive limits move: every step for those who debug, and for everyone when a limit
/// turns, or its signal goes missing and comes back.
pub(crate) struct AdaptiveLog {
    /// When limits are looked at again, in nanoseconds.
    next: AtomicU64,
    seen: Mutex<HashMap<Arc<str>, Seen>>,
    turns: Throttle,
}

/// Steps are at least twice as far apart, so that none is missed.
const INTERVAL: Duration = Duration::from_millis(200);

/// A limit as it was when it was looked at last.
#[derive(Clone, Copy)]
struct Seen {
    limit: f64,
    changes: u64,
    direction: Option<Direction>,
    has_signal: bool,
}

/// What is new about a limit.
pub(crate) enum Noticed {
    /// It was not there before.
    New,
    /// So many steps moved it.
    Moved(u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Raised,
    Lowered,
}

impl AdaptiveLog {
    /// True for one of those who ask, if it is time to look.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let (now, interval) = (now.as_nanos(), INTERVAL.as_nanos() as u64);
        // Relaxed: nothing else is ordered by it.
        let next = self.next.load(Ordering::Relaxed);
        // A clock that was set back must not silence the log until it has caught up.
        let is_due = now >= next || next - now > interval;
        let after = now.saturating_add(interval);
        is_due
            && self.next.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Logs what has changed since the last look, and passes it on.
    pub(crate) fn look(
        &self,
        states: &[AdaptiveState],
        mut noticed: impl FnMut(&AdaptiveState, Noticed),
    ) {
        // Nobody waits to log.
        let Ok(mut seen) = self.seen.try_lock() else { return };
        // Limits that a new policy leaves out are forgotten.
        seen.retain(|name, _| states.iter().any(|state| state.limit == *name));
        for state in states {
            let before = seen.get(&state.limit).copied().unwrap_or_else(|| {
                noticed(state, Noticed::New);
                Seen::start(state)
            });
            let changes = state.status.changes.saturating_sub(before.changes);
            if changes > 0 {
                noticed(state, Noticed::Moved(changes));
            }
            let direction = self.log_step(state, &before);
            let has_signal = log_signal(state, &before);
            let (limit, changes) = (state.status.limit, state.status.changes);
            let after = Seen { limit, changes, direction, has_signal };
            seen.insert(Arc::clone(&state.limit), after);
        }
    }

    /// Logs a step, and returns in which direction the limit went last.
    fn log_step(&self, state: &AdaptiveState, before: &Seen) -> Option<Direction> {
        let (from, to) = (before.limit, state.status.limit);
        if from == to {
            return before.direction;
        }
        let direction = if to > from { Direction::Raised } else { Direction::Lowered };
        let turned = before.direction != Some(direction);
        macro_rules! log {
            ($level:ident, $suppressed:expr) => {
                $level!(
                    target: "spillgate",
                    limit = &*state.limit,
                    from = rounded(from),
                    to = rounded(to),
                    controller = state.controller,
                    signal = state.signal,
                    value = state.status.signal.map(rounded),
                    reason = state.status.reason.name(),
                    suppressed = $suppressed,
                    "adaptive limit {}",
                    direction.name()
                )
            };
        }
        match turned.then(|| self.turns.admit(SystemClock.now())).flatten() {
            Some(suppressed) => log!(info, suppressed),
            None => log!(debug, None::<u64>),
        }
        Some(direction)
    }
}

/// Logs that a signal went missing or came back, once. Returns whether it is there.
fn log_signal(state: &AdaptiveState, before: &Seen) -> bool {
    let has_signal = state.status.reason != StepReason::NoSignal;
    let (limit, signal, held) = (&*state.limit, state.signal, rounded(state.status.limit));
    match (before.has_signal, has_signal) {
        (true, false) => warn!(
            target: "spillgate",
            limit, signal, held, "the signal is missing: the adaptive limit stays where it is"
        ),
        (false, true) => info!(
            target: "spillgate",
            limit, signal, "the signal is back: the adaptive limit follows it again"
        ),
        _ => {}
    }
    has_signal
}

/// As many digits as people read.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

impl Seen {
    /// A limit that is looked at for the first time, as it may have begun.
    fn start(state: &AdaptiveState) -> Self {
        Self { limit: state.status.limit, changes: 0, direction: None, has_signal: true }
    }
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Lowered => "lowered",
        }
    }
}

impl Default for AdaptiveLog {
    fn default() -> Self {
        // A limit that swings turns with every step.
        let turns = Throttle::new(Quota::per_minute(6).burst(10));
        Self { next: AtomicU64::new(0), seen: Mutex::default(), turns }
    }
}
