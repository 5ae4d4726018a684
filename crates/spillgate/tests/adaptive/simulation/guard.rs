use spillgate::Timestamp;
use spillgate::adaptive::{AdaptiveLimit, AdaptiveLimitBuilder, AdaptivePermit, Ending, Priority};

/// What stands before a service.
pub(crate) trait Guard {
    /// Lets a call go ahead, or does not.
    fn admit(&mut self, call: usize, priority: Priority, now: f64) -> bool;

    /// A call is over. If its client went away before, nobody knows how it would have ended.
    fn end(&mut self, call: usize, ending: Option<Ending>, now: f64);

    fn limit(&self) -> f64;
}

/// A moment, in seconds since the run began.
fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos(1_700_000_000_000_000_000 + (seconds * 1e9) as u64)
}

/// The limit that is tested.
pub(crate) struct Limited {
    limit: AdaptiveLimit,
    permits: Vec<Option<AdaptivePermit>>,
}

impl Limited {
    pub(crate) fn new(limit: AdaptiveLimitBuilder) -> Self {
        Self { limit: limit.build(), permits: Vec::new() }
    }
}

impl Guard for Limited {
    fn admit(&mut self, call: usize, priority: Priority, now: f64) -> bool {
        let permit = self.limit.try_acquire_at(priority, at(now)).ok();
        let goes_ahead = permit.is_some();
        if self.permits.len() <= call {
            self.permits.resize_with(call + 1, || None);
        }
        self.permits[call] = permit;
        goes_ahead
    }

    fn end(&mut self, call: usize, ending: Option<Ending>, now: f64) {
        let mut permit = self.permits[call].take().unwrap();
        if let Some(ending) = ending {
            permit.record_at(ending, at(now));
        }
    }

    fn limit(&self) -> f64 {
        self.limit.status().limit
    }
}

/// Nothing: everyone goes ahead.
pub(crate) struct Unlimited;

impl Guard for Unlimited {
    fn admit(&mut self, _: usize, _: Priority, _: f64) -> bool {
        true
    }

    fn end(&mut self, _: usize, _: Option<Ending>, _: f64) {}

    fn limit(&self) -> f64 {
        f64::INFINITY
    }
}
