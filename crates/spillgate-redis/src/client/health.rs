use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::backend::BackendError;

/// The state of Redis and of the calls so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// Why calls fail at once, if they do. In a Cluster, of one of its nodes.
    pub outage: Option<BackendError>,
    /// How long it has been down, or up.
    pub since: Duration,
    /// Calls made.
    pub calls: u64,
    /// Calls that timed out.
    pub time_outs: u64,
    /// Calls that failed otherwise.
    pub failures: u64,
    /// Calls rejected at once because Redis was down.
    pub rejected: u64,
    /// Calls rejected by backpressure.
    pub overloaded: u64,
    /// Connections opened.
    pub connects: u64,
    /// Outages.
    pub outages: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Calls queued.
    pub waiting: u64,
    /// Calls so far that were queued.
    pub waited: u64,
    /// Their total time in the queue.
    pub wait: Duration,
    /// Reply times.
    pub round_trips: RoundTrips,
}

/// A histogram of reply times.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrips {
    /// Replies per bucket: up to each of the [bounds](Self::BOUNDS), and beyond the last.
    pub counts: [u64; Self::BOUNDS.len() + 1],
    /// The sum of all reply times.
    pub sum: Duration,
}

impl RoundTrips {
    /// Upper bounds of the buckets.
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

/// Counters; relaxed, since each stands for itself.
#[derive(Debug, Default)]
pub(super) struct CallCounters {
    pub(super) calls: AtomicU64,
    pub(super) time_outs: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) connects: AtomicU64,
    pub(super) outages: AtomicU64,
    overloaded: AtomicU64,
    waited: AtomicU64,
    wait_nanos: AtomicU64,
    /// When backpressure last rejected a call: nanoseconds since `begin`, 0 if never.
    last_overload: AtomicU64,
    begin: OnceLock<Instant>,
    round_trips: [AtomicU64; RoundTrips::BOUNDS.len() + 1],
    round_trip_nanos: AtomicU64,
}

/// After so long without a rejection, the next one begins another overload.
const CALM: Duration = Duration::from_secs(10);

impl CallCounters {
    /// Increments a counter.
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a queued call.
    pub(super) fn waited(&self, wait: Duration) {
        Self::count(&self.waited);
        self.wait_nanos.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Counts a call rejected by backpressure. Returns whether an overload has just begun.
    pub(super) fn refused(&self) -> bool {
        Self::count(&self.overloaded);
        let now = (self.begin.get_or_init(Instant::now).elapsed().as_nanos() as u64).max(1);
        let last = self.last_overload.swap(now, Ordering::Relaxed);
        last == 0 || now.saturating_sub(last) > CALM.as_nanos() as u64
    }

    /// Counts a reply time.
    pub(super) fn answered(&self, after: Duration) {
        let place = RoundTrips::BOUNDS.partition_point(|bound| *bound < after);
        if let Some(counter) = self.round_trips.get(place) {
            Self::count(counter);
        }
        self.round_trip_nanos.fetch_add(after.as_nanos() as u64, Ordering::Relaxed);
    }

    /// A snapshot, with the state of Redis and the calls in flight and queued.
    pub(super) fn health(
        &self,
        outage: Option<BackendError>,
        since: Duration,
        (in_flight, waiting): (u64, u64),
    ) -> Health {
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
            overloaded: read(&self.overloaded),
            in_flight,
            waiting,
            waited: read(&self.waited),
            wait: Duration::from_nanos(read(&self.wait_nanos)),
            round_trips: RoundTrips {
                counts: self.round_trips.each_ref().map(read),
                sum: Duration::from_nanos(read(&self.round_trip_nanos)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_overload_begins_once_until_it_has_been_calm() {
        let counters = CallCounters::default();
        assert!(counters.refused());
        for _ in 0..20 {
            tokio::time::advance(CALM / 2).await;
            assert!(!counters.refused());
        }
        tokio::time::advance(CALM * 2).await;
        assert!(counters.refused());
        assert_eq!(counters.health(None, Duration::ZERO, (0, 0)).overloaded, 22);
    }

    #[test]
    fn an_answer_is_counted_under_the_first_bound_that_it_keeps() {
        let counters = CallCounters::default();
        for micros in [1, 100, 101, 500_000, 500_001] {
            counters.answered(Duration::from_micros(micros));
        }
        let trips = counters.health(None, Duration::ZERO, (0, 0)).round_trips;
        assert_eq!(trips.counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(trips.sum, Duration::from_micros(1_000_203));
    }
}
