//! What all adaptive limits share: a controller, and the window that it looks at next.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::limit_state::LimitState;
use super::recorder::Recorder;
use super::regulated::Regulated;
use super::{AdaptiveStatus, Controller, Ending, Signal, Window};
use crate::Timestamp;
use crate::sync::{lock_plain, try_lock_plain};

/// Moves a limit, window by window.
///
/// There is no background task: whoever calls when a window is due takes the step, while all
/// others go on under the old limit.
pub(super) struct Regulator {
    /// When the next step is due, less [`NOT_DUE`].
    due: AtomicU64,
    refused: AtomicU64,
    most_in_flight: AtomicU32,
    recorder: Recorder,
    /// Held for a step, which may read files.
    stepper: Mutex<Stepper>,
    /// Held for a copy.
    standing: Mutex<LimitState>,
}

/// What a regulator is built of.
pub(super) struct RegulatorSettings {
    pub(super) controller: Box<dyn Controller>,
    pub(super) signal: Option<Box<dyn Signal>>,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) start: f64,
}

struct Stepper {
    controller: Box<dyn Controller>,
    signal: Option<Box<dyn Signal>>,
    /// When the window began; `None` before the first call.
    began: Option<Timestamp>,
    /// How many calls were refused before.
    refused: u64,
}

/// The shortest window for latencies and failures.
const WINDOW: Duration = Duration::from_secs(1);
/// The fewest samples in it.
const SAMPLES: u64 = 10;
/// The window of a signal.
const SIGNAL_WINDOW: Duration = Duration::from_millis(500);
/// A window that is older is thrown away: what is in it is not of now. If it has refused calls, it
/// counts for as long again.
const STALE: Duration = Duration::from_secs(60);

/// A step is not due for this long before the time it is due at. Earlier than that, time has gone
/// back, and the window begins anew. A thread that was held up for seconds comes with an old time
/// too, and must not turn the time back for all others.
const NOT_DUE: u64 = 60_000_000_000;
/// Due at any time.
const AT_ONCE: u64 = 1 << 63;

// Relaxed throughout: counts order nothing, and the locks order the rest.
impl Regulator {
    pub(super) fn new(settings: RegulatorSettings) -> Self {
        let (stepper, state) = settings.split();
        Self {
            due: AtomicU64::new(AT_ONCE),
            refused: AtomicU64::new(0),
            most_in_flight: AtomicU32::new(0),
            recorder: Recorder::new(),
            stepper: Mutex::new(stepper),
            standing: Mutex::new(state),
        }
    }

    /// Whether somebody should [`turn`](Self::turn) to the next window.
    #[inline]
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        now.as_nanos().wrapping_sub(self.due.load(Ordering::Relaxed)) >= NOT_DUE
    }

    /// Takes a step if one is due, unless somebody else is at it.
    #[cold]
    pub(super) fn turn(&self, now: Timestamp, regulated: &impl Regulated) {
        // A controller or signal that panics has its next step in the next window.
        let Some(mut stepper) = try_lock_plain(&self.stepper) else { return };
        if !self.is_due(now) {
            return;
        }
        let Some(began) = stepper.began.filter(|began| *began <= now) else {
            return self.begin_anew(&mut stepper, now, regulated);
        };
        let length = now.since(began);
        if self.is_complete(&stepper, length) {
            self.begin(&mut stepper, now);
            let window = self.window(&mut stepper, length, now, regulated);
            self.step(&mut stepper, &window, now, regulated);
        } else if length > STALE {
            self.begin(&mut stepper, now);
            let window = self.window(&mut stepper, length, now, regulated);
            // After a pause, nobody is refused for what was before it.
            let window = if length > 2 * STALE { Window::default() } else { window };
            self.forget(&mut stepper, &window, now, regulated);
        }
    }

    /// Whether a step can be taken with what a window has seen.
    fn is_complete(&self, stepper: &Stepper, length: Duration) -> bool {
        if length <= STALE {
            return stepper.signal.is_some() || self.recorder.completed() >= SAMPLES;
        }
        // A limit that is too low for enough samples would otherwise stay so.
        let has_refused = self.refused.load(Ordering::Relaxed) != stepper.refused;
        let is_recent = length <= 2 * STALE && stepper.signal.is_none();
        is_recent && has_refused && self.recorder.completed() > 0
    }

    fn begin(&self, stepper: &mut Stepper, now: Timestamp) {
        stepper.began = Some(now);
        let length = if stepper.signal.is_some() { SIGNAL_WINDOW } else { WINDOW };
        let due = now.as_nanos().wrapping_add(length.as_nanos() as u64).wrapping_sub(NOT_DUE);
        self.due.store(due, Ordering::Relaxed);
    }

    /// Begins a window without a step: the first one, or the first after time went back.
    fn begin_anew(&self, stepper: &mut Stepper, now: Timestamp, regulated: &impl Regulated) {
        self.begin(stepper, now);
        // Nothing of the old window is left, and a signal that compares two readings has the first.
        let _ = self.window(stepper, Duration::ZERO, now, regulated);
        regulated.begin_anew(now);
    }

    fn window(
        &self,
        stepper: &mut Stepper,
        length: Duration,
        now: Timestamp,
        regulated: &impl Regulated,
    ) -> Window {
        let samples = self.recorder.take();
        let refused = self.refused.load(Ordering::Relaxed);
        let refused_before = std::mem::replace(&mut stepper.refused, refused);
        let refused = refused.wrapping_sub(refused_before);
        let signal = stepper.signal.as_mut().and_then(|signal| signal.read(now));
        Window {
            kind: regulated.kind(),
            length,
            completed: samples.completed,
            failed: samples.failed,
            refused,
            mean_latency: samples.mean(),
            p90_latency: samples.p90(),
            most_in_flight: self.most_in_flight(regulated.in_flight()),
            signal: signal.filter(|signal| signal.is_finite()),
        }
    }

    fn step(
        &self,
        stepper: &mut Stepper,
        window: &Window,
        now: Timestamp,
        regulated: &impl Regulated,
    ) {
        let mut state = *self.state();
        state.is_missing = stepper.signal.is_some() && window.signal.is_none();
        state.signal = window.signal;
        if !state.is_missing {
            let step = stepper.controller.step(state.limit, window);
            let latency = window.mean_latency.map(|mean| mean.as_secs_f64());
            state.signal = step.looked_at.or(window.signal).or(latency);
            state.move_to(step.limit, step.reason);
        }
        self.settle(state, window, now, regulated);
    }

    /// Lets the controller forget what it has seen, after a long time without a step.
    fn forget(
        &self,
        stepper: &mut Stepper,
        window: &Window,
        now: Timestamp,
        regulated: &impl Regulated,
    ) {
        let mut state = *self.state();
        let step = stepper.controller.forget(state.limit);
        state.signal = step.looked_at;
        state.move_to(step.limit, step.reason);
        self.settle(state, window, now, regulated);
        regulated.begin_anew(now);
    }

    fn settle(
        &self,
        state: LimitState,
        window: &Window,
        now: Timestamp,
        regulated: &impl Regulated,
    ) {
        let before = std::mem::replace(&mut *self.state(), state);
        if state.limit != before.limit {
            regulated.apply(state.limit, now);
        }
        regulated.end_window(window, state.limit);
    }

    /// Counts a call in flight.
    #[inline]
    pub(super) fn saw_in_flight(&self, in_flight: u32) {
        if in_flight > self.most_in_flight.load(Ordering::Relaxed) {
            self.most_in_flight.fetch_max(in_flight, Ordering::Relaxed);
        }
    }

    /// Counts a call that was refused.
    #[inline]
    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts calls that ended alike.
    #[inline]
    pub(super) fn record(&self, ending: Ending, latency: Duration, count: u32) {
        self.recorder.add(ending, latency, count);
    }

    /// Changes the bounds. Waits for a step that is being taken.
    pub(super) fn set_bounds(
        &self,
        bounds: (f64, f64),
        now: Timestamp,
        regulated: &impl Regulated,
    ) {
        let _no_step = lock_plain(&self.stepper);
        self.bound(bounds, now, regulated);
    }

    /// Changes everything but the limit, which is brought between the new bounds, and the counts.
    pub(super) fn replace(
        &self,
        settings: RegulatorSettings,
        now: Timestamp,
        regulated: &impl Regulated,
    ) {
        let mut stepper = lock_plain(&self.stepper);
        let (next, state) = settings.split();
        *stepper = Stepper { refused: stepper.refused, ..next };
        self.due.store(AT_ONCE, Ordering::Relaxed);
        // The new signal was not looked at yet.
        self.state().unsee();
        self.bound((state.min, state.max), now, regulated);
    }

    fn bound(&self, (min, max): (f64, f64), now: Timestamp, regulated: &impl Regulated) {
        let mut state = *self.state();
        (state.min, state.max) = (min, max);
        state.limit = state.limit.clamp(min, max);
        *self.state() = state;
        regulated.apply(state.limit, now);
    }

    /// The most calls that were in flight, given those that are: they belong to the next window too.
    fn most_in_flight(&self, now: u32) -> u32 {
        let most = self.most_in_flight.swap(0, Ordering::Relaxed);
        self.saw_in_flight(now);
        most.max(now)
    }

    pub(super) fn limit(&self) -> f64 {
        self.state().limit
    }

    pub(super) fn status(&self, in_flight: u32) -> AdaptiveStatus {
        let state = *self.state();
        state.status(self.refused.load(Ordering::Relaxed), in_flight)
    }

    fn state(&self) -> MutexGuard<'_, LimitState> {
        lock_plain(&self.standing)
    }
}

impl RegulatorSettings {
    fn split(self) -> (Stepper, LimitState) {
        let Self { controller, signal, min, max, start } = self;
        let state = LimitState::new(start, min, max);
        (Stepper { controller, signal, began: None, refused: 0 }, state)
    }
}
