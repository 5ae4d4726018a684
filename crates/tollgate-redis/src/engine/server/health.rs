use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::engine::{EngineError, Fault};

/// How an engine is, and what came of the calls so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// What is wrong, if calls fail at once. Of a Cluster, with one of its nodes.
    pub outage: Option<EngineError>,
    /// For how long it has been so, or well.
    pub since: Duration,
    /// Calls made.
    pub calls: u64,
    /// Calls that were not answered in time.
    pub time_outs: u64,
    /// Calls that failed otherwise.
    pub failures: u64,
    /// Calls that failed at once, since the engine was down or too many were waiting.
    pub rejected: u64,
    /// How often a server was connected to, again or for the first time.
    pub connects: u64,
    /// How often a server went down.
    pub outages: u64,
    /// Calls that are waiting for an answer.
    pub in_flight: u64,
    /// How long answers took.
    pub round_trips: RoundTrips,
}

/// How many answers took how long.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrips {
    /// For each of the [bounds](Self::BOUNDS) how many took no longer, but longer than the one
    /// before; and last, how many took longer than all of them.
    pub counts: [u64; Self::BOUNDS.len() + 1],
    /// How long all of them took together.
    pub sum: Duration,
}

impl RoundTrips {
    /// The bounds by which answers are counted.
    pub const BOUNDS: [Duration; 11] = [
        Duration::from_micros(100),
        Duration::from_micros(200),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_millis(2),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(20),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(500),
    ];
}

/// What is counted. Each number stands for itself, so all orderings are relaxed.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) calls: AtomicU64,
    pub(super) time_outs: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) connects: AtomicU64,
    pub(super) outages: AtomicU64,
    in_flight: AtomicU64,
    round_trips: [AtomicU64; RoundTrips::BOUNDS.len() + 1],
    round_trip_nanos: AtomicU64,
}

/// A place among the calls that are waiting, given up when this is dropped.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Counters);

impl Counters {
    /// Counts one more.
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a place among at most `most` calls.
    pub(super) fn enter(&self, most: usize) -> Result<Place<'_>, EngineError> {
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let place = Place(self);
        if before >= most as u64 {
            Self::count(&self.rejected);
            let text = format!("{before} calls are waiting for the engine, and no more may");
            return Err(EngineError::new(Fault::TimedOut, text));
        }
        Self::count(&self.calls);
        Ok(place)
    }

    /// Notes how long an answer took.
    pub(super) fn answered(&self, after: Duration) {
        let place = RoundTrips::BOUNDS.partition_point(|bound| *bound < after);
        if let Some(counter) = self.round_trips.get(place) {
            Self::count(counter);
        }
        self.round_trip_nanos.fetch_add(after.as_nanos() as u64, Ordering::Relaxed);
    }

    /// All of them, with how the engine is.
    pub(super) fn health(&self, outage: Option<EngineError>, since: Duration) -> Health {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Health {
            outage,
            since,
            calls: read(&self.calls),
            time_outs: read(&self.time_outs),
            failures: read(&self.failures),
            rejected: read(&self.rejected),
            connects: read(&self.connects),
            outages: read(&self.outages),
            in_flight: read(&self.in_flight),
            round_trips: RoundTrips {
                counts: self.round_trips.each_ref().map(read),
                sum: Duration::from_nanos(read(&self.round_trip_nanos)),
            },
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_as_many_as_may_wait_and_are_given_up() {
        let counters = Counters::default();
        let first = counters.enter(2).unwrap();
        let _second = counters.enter(2).unwrap();
        assert_eq!(counters.enter(2).unwrap_err().fault(), Fault::TimedOut);
        drop(first);
        assert!(counters.enter(2).is_ok());
        let health = counters.health(None, Duration::ZERO);
        assert_eq!((health.calls, health.rejected, health.in_flight), (3, 1, 1));
    }

    #[test]
    fn an_answer_is_counted_under_the_first_bound_that_it_keeps() {
        let counters = Counters::default();
        for micros in [1, 100, 101, 500_000, 500_001] {
            counters.answered(Duration::from_micros(micros));
        }
        let trips = counters.health(None, Duration::ZERO).round_trips;
        assert_eq!(trips.counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(trips.sum, Duration::from_micros(1_000_203));
    }
}
