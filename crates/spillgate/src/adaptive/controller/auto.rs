use super::pace::Pace;
use super::seen::{InTransit, Mark, Seen};
use super::{Controller, Step, StepReason, Window};

/// Windows until the first probe is repeated; each one after that waits twice as long as the one
/// before, up to the second number. A probe costs about a quarter of one window's calls.
const PROBE_AFTER: (u32, u32) = (4, 128);

/// A probe goes below the supposed knee by twice this at least, and has to tell less from as many.
const NOISE: f64 = 0.075;

/// Finds how much a service can do at once, by its latency. Needs no numbers.
///
/// It keeps the limit a little above the *knee*, the number of calls in flight from which a
/// service does not get faster and only its queue grows: completed calls per second × latency
/// without a queue. What is added for the queue is the square root of the limit while far
/// more calls come than can be served, and three times that if there are hardly more: random
/// arrivals then leave gaps, which only a longer queue can fill.
///
/// The latency without a queue is the lowest seen, until there is evidence for another:
///
/// - If a lower limit completes fewer calls, it was not a queue that was made shorter. The service
///   itself became slower, and the latency seen there is the new one.
/// - While calls are refused, the limit is lowered below the knee for a window, now and then
///   ([`StepReason::Probe`]). If as many calls are completed then, the knee is lower still. A limit
///   that begins far too high, when the service is overloaded already, is found out like that.
///
/// A rate is kept where the latency is at most twice that without a queue.
///
/// A service that is not overloaded is never probed. It learns nothing from cancelled calls, and
/// from failed ones only that they were completed.
///
/// ```
/// use spillgate::adaptive::{AdaptiveLimit, Auto, Priority};
///
/// let limit = AdaptiveLimit::concurrency(Auto::default(), 1..=500).build();
/// assert!(limit.try_acquire(Priority::default()).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Auto {
    /// The latency without a queue, in seconds.
    base: Option<f64>,
    /// Calls completed per second while some were refused, smoothed.
    capacity: Option<f64>,
    /// Calls that were asked for, for each completed one, smoothed.
    overload: f64,
    phase: Phase,
    probe_in: u32,
    probe_after: u32,
    in_transit: InTransit,
    pace: Pace,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Follows the queue. With where a run of decreases began, if there is one.
    Following(Option<Mark>),
    /// The limit is below the supposed knee, to see whether fewer calls are completed than before.
    Probing { before: Mark, again: bool },
}

impl Default for Auto {
    fn default() -> Self {
        Self {
            base: None,
            capacity: None,
            overload: 1.0,
            phase: Phase::Following(None),
            probe_in: 0,
            probe_after: PROBE_AFTER.0,
            in_transit: InTransit::default(),
            pace: Pace::default(),
        }
    }
}

impl Controller for Auto {
    fn step(&mut self, limit: f64, window: &Window) -> Step {
        let seen = Seen::new(limit, window);
        let Some(latency) = seen.latency(window.mean_latency) else {
            return Step::new(seen.limit, StepReason::Unused);
        };
        let in_transit = self.in_transit;
        if !self.in_transit.has_passed(&seen) {
            return Step::new(seen.limit, StepReason::Steady);
        }
        let base = *self.base.get_or_insert(latency);
        if seen.is_rate() {
            return self.pace(&seen, latency, base.min(latency));
        }
        let step = match self.phase {
            // What a probe shows would be the latency of the limit before it.
            Phase::Probing { before, .. } if in_transit.blurs(&seen, &before, base) => {
                return Step::new(seen.limit, StepReason::Probe);
            }
            Phase::Probing { before, again } => self.probed(&seen, latency, base, before, again),
            Phase::Following(run) => self.follow(&seen, latency, base, run),
        };
        if step.limit != seen.limit {
            self.in_transit.moved(&seen);
        }
        step
    }
}

impl Auto {
    fn follow(&mut self, seen: &Seen, latency: f64, base: f64, run: Option<Mark>) -> Step {
        if seen.saturated && latency < 0.8 * base {
            // Faster than ever under full load: the service was made faster, and there is
            // a queue in what is seen of it.
            self.probe_soon();
        }
        let base = base.min(latency);
        self.base = Some(base);
        self.overload += 0.3 * (seen.overload.min(4.0) - self.overload);
        if !seen.is_used() {
            self.phase = Phase::Following(None);
            return Step::new(seen.limit, StepReason::Unused);
        }
        if let Some(step) = self.probe_if_due(seen, base) {
            return step;
        }
        if let Some(run) = run.filter(|run| slower(seen, run)) {
            self.base = Some(latency);
            self.probe_soon();
            let limit = self.around(run.rate * latency);
            return self.follow_on(limit.min(run.limit), StepReason::SlowerService);
        }
        self.by_queue(seen, base / latency, run)
    }

    /// Moves towards the knee and the room for a queue, by half the way.
    fn by_queue(&mut self, seen: &Seen, unqueued: f64, run: Option<Mark>) -> Step {
        let room = self.headroom() * seen.held.sqrt();
        let queue = seen.held * (1.0 - unqueued);
        let next = match queue < room / 2.0 {
            true => seen.limit + (seen.limit / 4.0).max(1.0),
            false => (seen.limit + seen.held * unqueued.max(0.3) + room) / 2.0,
        };
        if next < seen.limit {
            let began = Mark { limit: seen.held, rate: seen.rate };
            self.phase = Phase::Following(Some(run.unwrap_or(began)));
            return Step::new(next, StepReason::LongQueue);
        }
        self.follow_on(next, StepReason::ShortQueue)
    }

    fn probe_if_due(&mut self, seen: &Seen, base: f64) -> Option<Step> {
        if !seen.saturated {
            self.capacity = None;
            return None;
        }
        let capacity = self.capacity.map_or(seen.rate, |old| old + 0.4 * (seen.rate - old));
        self.capacity = Some(capacity);
        if let Some(left) = self.probe_in.checked_sub(1) {
            self.probe_in = left;
            return None;
        }
        let before = Mark { limit: seen.limit, rate: capacity };
        self.phase = Phase::Probing { before, again: false };
        let below = (1.0 - 2.0 * seen.noise(NOISE)) * before.rate * base;
        Some(Step::new(below.min(seen.held - 1.0).max(1.0), StepReason::Probe))
    }

    /// What a lower limit has shown.
    fn probed(&mut self, seen: &Seen, latency: f64, base: f64, before: Mark, again: bool) -> Step {
        if !seen.saturated {
            // The load has gone, and with it what would have been learnt.
            self.base = Some(base.min(latency));
            return self.follow_on(before.limit, StepReason::Unused);
        }
        let expected = if again { 0.25 } else { seen.noise(NOISE) };
        let as_many = seen.rate > before.rate * (1.0 - expected);
        // With one call in flight, or where the limit cannot be lower, what is seen is all that can
        // be known.
        let is_lowest = seen.held <= 1.0 || seen.held >= before.limit.floor();
        if as_many && !is_lowest {
            self.base = Some(base.min(latency));
            let rate = match seen.rate > 1.25 * before.rate {
                true => seen.rate,
                false => (seen.rate + before.rate) / 2.0,
            };
            self.phase = Phase::Probing { before: Mark { limit: seen.limit, rate }, again: true };
            return Step::new((seen.held / 2.0).min(seen.held - 1.0).max(1.0), StepReason::Probe);
        }
        let found = match (latency / base - 1.0).abs() < 0.25 {
            true => f64::midpoint(latency, base),
            false if !as_many || is_lowest || latency < base => latency,
            false => base,
        };
        self.base = Some(found);
        self.probe_in = self.probe_after;
        self.probe_after = (self.probe_after * 2).min(PROBE_AFTER.1);
        let limit = self.around(before.rate * found);
        let confirmed = !again && (found / base - 1.0).abs() < 0.1;
        let limit = if confirmed { before.limit.min(1.5 * limit + 1.0) } else { limit };
        self.follow_on(limit, StepReason::Probed)
    }

    fn pace(&mut self, seen: &Seen, latency: f64, base: f64) -> Step {
        let step = self.pace.step(seen, latency, 2.0 * base);
        let is_slower = step.reason == StepReason::SlowerService;
        self.base = Some(if is_slower { latency } else { base });
        step
    }

    fn follow_on(&mut self, limit: f64, reason: StepReason) -> Step {
        self.phase = Phase::Following(None);
        Step::new(limit, reason)
    }

    fn probe_soon(&mut self) {
        self.probe_after = 2 * PROBE_AFTER.0;
        self.probe_in = self.probe_in.min(self.probe_after);
    }

    /// A knee, with room for a queue.
    fn around(&self, knee: f64) -> f64 {
        (knee + self.headroom() * knee.sqrt()).max(1.0)
    }

    /// How long the queue may be, in square roots of the limit: 3 if as many calls are asked for as
    /// are completed, 1 from two and a half times as many.
    fn headroom(&self) -> f64 {
        (1.0 + (2.5 - self.overload) / 1.5 * 2.0).clamp(1.0, 3.0)
    }
}

/// Whether a run of decreases made the service complete less, which a shorter queue would not.
fn slower(seen: &Seen, run: &Mark) -> bool {
    let less = (2.0 * seen.noise(NOISE)).clamp(0.1, 0.4);
    seen.saturated && seen.held <= 0.8 * run.limit && seen.rate <= (1.0 - less) * run.rate
}
