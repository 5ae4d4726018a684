//! Adaptive limits: counting, windows and quotas, whatever the controller.

mod counting;
mod cpu;
#[cfg(feature = "tokio")]
mod event_loop;
mod rate;
mod rate_model;
mod seldom;
mod share;
mod signal;
mod threads;
mod windows;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::adaptive::{Controller, Priority, Step, StepReason, Window};

/// A controller that is told what to do, and tells what it saw.
#[derive(Clone, Debug, Default)]
struct Script {
    next: Arc<Mutex<Option<f64>>>,
    seen: Arc<Mutex<Vec<Window>>>,
}

impl Script {
    /// Moves the limit at the next step.
    fn then(&self, limit: f64) {
        *self.next.lock().unwrap() = Some(limit);
    }

    /// The windows of all steps so far.
    fn windows(&self) -> Vec<Window> {
        self.seen.lock().unwrap().clone()
    }

    fn steps(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

impl Controller for Script {
    fn step(&mut self, limit: f64, window: &Window) -> Step {
        self.seen.lock().unwrap().push(window.clone());
        match self.next.lock().unwrap().take() {
            Some(next) => Step::new(next, StepReason::BelowTarget),
            None => Step::new(limit, StepReason::Steady),
        }
    }
}

/// The time this many milliseconds after the tests begin.
fn at(ms: u64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000) + Duration::from_millis(ms)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn anyone() -> Priority {
    Priority::default()
}
