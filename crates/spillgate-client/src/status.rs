use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::headers::{Dialect, Unit};

/// What a client is doing: see [`ClientLayer::status`](crate::ClientLayer::status).
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct BudgetStatus {
    /// The host, with its port unless that is the one of the scheme. `other hosts` is what all share
    /// for which there is [no room](crate::ClientBuilder::max_budgets), while it is in use.
    pub host: Box<str>,
    /// The [key](crate::ClientBuilder::key), empty unless one is set. It may be a secret, so `Debug` does
    /// not show it.
    pub key: Box<str>,
    /// Requests in flight.
    pub in_flight: u64,
    /// How many may be in flight for now.
    pub max_in_flight: u64,
    /// Requests that wait to be sent.
    pub waiting: usize,
    /// For how long the far side wants no request at all: zero unless it has refused one.
    pub blocked_for: Duration,
    /// The limits that the far side has announced, in the order of their names.
    pub limits: Vec<(LimitKey, LimitStatus)>,
}

impl fmt::Debug for BudgetStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetStatus")
            .field("host", &self.host)
            .field("in_flight", &self.in_flight)
            .field("max_in_flight", &self.max_in_flight)
            .field("waiting", &self.waiting)
            .field("blocked_for", &self.blocked_for)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Which limit of a far side it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct LimitKey {
    /// The name that the far side gives it.
    pub name: Option<Box<str>>,
    /// The [route](crate::ClientBuilder::route) that it belongs to if it has no name.
    pub route: Option<Box<str>>,
    /// The headers that announce it.
    pub dialect: Dialect,
    /// What it counts.
    pub unit: Unit,
}

/// A limit of a far side, as it must be there now.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LimitStatus {
    /// How much there is in all.
    pub limit: u64,
    /// What must be left, less what is in flight.
    pub remaining: u64,
    /// The time until all of it is back.
    pub reset_after: Duration,
    /// How much is refilled per second, as measured: zero if nothing is known, or before a reset.
    pub refill_per_second: f64,
}

/// What clients have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests sent, including retries.
    pub sent: u64,
    /// Requests that the far side refused: 429, 503 with `Retry-After`, 403 for a rate limit.
    pub refused: u64,
    /// Requests that had to wait before they were sent.
    pub waited: u64,
    /// Requests not sent, since they would have had to wait for too long.
    pub limited: u64,
    /// Requests not sent, since too many waited.
    pub queue_full: u64,
    /// Requests sent again.
    pub retries: u64,
    /// Requests not sent again, since the retry budget was used up.
    pub retries_denied: u64,
    /// How often the far side made the client stop.
    pub blocks: u64,
}

/// [`Counts`] while they are counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sent: Counter,
    pub(crate) refused: Counter,
    pub(crate) waited: Counter,
    pub(crate) limited: Counter,
    pub(crate) queue_full: Counter,
    pub(crate) retries: Counter,
    pub(crate) retries_denied: Counter,
    pub(crate) blocks: Counter,
}

/// Relaxed: a count orders nothing else.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn read(&self) -> Counts {
        Counts {
            sent: self.sent.get(),
            refused: self.refused.get(),
            waited: self.waited.get(),
            limited: self.limited.get(),
            queue_full: self.queue_full.get(),
            retries: self.retries.get(),
            retries_denied: self.retries_denied.get(),
            blocks: self.blocks.get(),
        }
    }
}
