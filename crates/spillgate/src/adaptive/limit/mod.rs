//! Limits on how much one service does at once, and on the share of calls that it gets.

mod builder;
mod look;
mod permit;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use self::builder::AdaptiveLimitBuilder;
use self::builder::{Bounds, permits};
pub use self::permit::{AdaptivePermit, Ending, Shed};
use super::diffusion::Diffusion;
use super::in_flight::InFlight;
use super::priority::Standing;
use super::ranking::Ranking;
use super::regulated::Regulated;
use super::regulator::Regulator;
use super::{AdaptiveStatus, LimitKind, Priority, Window};
use crate::{Clock, SystemClock, Timestamp};

/// Limits how much a service does at once, by what the service can take.
///
/// A call that goes ahead holds an [`AdaptivePermit`] while it is in flight, and says how it
/// ended. From that a [`Controller`](super::Controller) finds, window by window, how many calls may
/// be in flight. The count is exact whatever the number of threads: none goes ahead above the limit
/// in force (by priority, those of high classes may exceed it a little, and never the maximum). A
/// limit that is lowered takes no permit away.
///
/// ```
/// use spillgate::adaptive::{AdaptiveLimit, Auto, Ending, Priority};
///
/// let service = AdaptiveLimit::concurrency(Auto::default(), 2..=100).start(2.0).build();
/// let mut first = service.try_acquire(Priority::default())?;
/// let second = service.try_acquire(Priority::default())?;
/// assert!(service.try_acquire(Priority::default()).is_err(), "503 Service Unavailable");
///
/// first.record(Ending::Ok); // The response is there,
/// drop(first); // and has been sent.
/// assert!(service.try_acquire(Priority::default()).is_ok());
/// # drop(second);
/// # Ok::<(), spillgate::adaptive::Shed>(())
/// ```
///
/// There is no background task: steps are taken by calls, and one that finds a window due takes
/// it while the others go on. Clones share the limit.
pub struct AdaptiveLimit<C = SystemClock> {
    shared: Arc<LimitCore<C>>,
}

struct LimitCore<C> {
    clock: C,
    in_flight: InFlight,
    /// The most that the limit can be.
    max: AtomicU32,
    /// For a limit that is a share.
    share: Option<Diffusion>,
    ranking: Ranking,
    regulator: Regulator,
}

impl<C: Clock> AdaptiveLimit<C> {
    /// Lets a call go ahead, or refuses it.
    ///
    /// # Errors
    ///
    /// If as much is in flight as the service can take, or the priority is too low at present.
    pub fn try_acquire(&self, priority: Priority) -> Result<AdaptivePermit<C>, Shed> {
        self.try_acquire_at(priority, self.shared.clock.now())
    }

    /// [`try_acquire`](Self::try_acquire) at a given time.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_at(
        &self,
        priority: Priority,
        now: Timestamp,
    ) -> Result<AdaptivePermit<C>, Shed> {
        self.shared.turn_if_due(now);
        match self.shared.try_enter(priority) {
            true => Ok(AdaptivePermit::new(&self.shared, now)),
            false => {
                self.shared.regulator.refuse();
                Err(Shed::new())
            }
        }
    }

    /// Lets a call go ahead in any case, and says whether [`try_acquire`](Self::try_acquire) would
    /// have: to try a limit out before it is enforced. A call that would have been refused counts
    /// as refused.
    ///
    /// Calls beyond the limit slow the service down, and the controller sees that: the limit falls
    /// further than it would if it were enforced.
    pub fn acquire_beyond_at(
        &self,
        priority: Priority,
        now: Timestamp,
    ) -> (AdaptivePermit<C>, Result<(), Shed>) {
        self.shared.turn_if_due(now);
        let result = match self.shared.try_enter(priority) {
            true => Ok(()),
            false => {
                self.shared.regulator.refuse();
                self.shared.enter_beyond();
                Err(Shed::new())
            }
        };
        (AdaptivePermit::new(&self.shared, now), result)
    }

    /// Whether [`try_acquire_at`](Self::try_acquire_at) would let a call go ahead. Counts nothing:
    /// a call that is refused for this answer is one for [`refuse_at`](Self::refuse_at).
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    pub fn peek_at(&self, priority: Priority, now: Timestamp) -> Result<(), Shed> {
        self.shared.turn_if_due(now);
        let standing = self.shared.ranking.peek(priority);
        let goes_ahead = match &self.shared.share {
            Some(share) => standing.map_or_else(|| share.peek(), |it| it != Standing::Below),
            None => {
                let (limit, held) = self.shared.in_flight.read();
                held < self.shared.room(standing, limit)
            }
        };
        if goes_ahead { Ok(()) } else { Err(Shed::new()) }
    }

    /// Counts a call that was refused because of what [`peek_at`](Self::peek_at) said.
    pub fn refuse_at(&self, priority: Priority, now: Timestamp) {
        self.shared.turn_if_due(now);
        let standing = self.shared.ranking.arrive(priority);
        if let (Some(share), None) = (&self.shared.share, standing) {
            share.refuse();
        }
        self.shared.regulator.refuse();
    }

    /// Notes how a call ended that held no permit, as a program elsewhere reports it.
    pub fn record_at(&self, ending: Ending, latency: Duration, now: Timestamp) {
        self.record_n_at(ending, latency, 1, now);
    }

    /// [`record_at`](Self::record_at) for `count` calls that ended alike.
    pub fn record_n_at(&self, ending: Ending, latency: Duration, count: u32, now: Timestamp) {
        self.shared.turn_if_due(now);
        self.shared.regulator.record(ending, latency, count);
    }

    /// Where the limit is now, and why.
    #[must_use]
    pub fn status(&self) -> AdaptiveStatus {
        self.shared.regulator.status(self.shared.in_flight.read().1)
    }

    /// Changes the bounds, as [`concurrency`](AdaptiveLimit::concurrency) takes them. The limit
    /// stays, if it is between them. Those of a share stay as they are.
    pub fn set_range(&self, range: RangeInclusive<u32>) {
        if self.shared.share.is_none() {
            let bounds = Bounds::concurrency(&range);
            self.shared.set_max(bounds);
            let now = self.shared.clock.now();
            self.shared.regulator.set_bounds(bounds.range(), now, &*self.shared);
        }
    }

    /// Changes the controller, the signal, the bounds, and whether calls are shed by priority. The
    /// limit stays, if it is between the bounds; the clock, permits and counts stay. Returns false,
    /// and changes nothing, if one limits concurrency and the other a share.
    pub fn reconfigure<D: Clock>(&self, builder: AdaptiveLimitBuilder<D>) -> bool {
        let (bounds, by_priority) = (builder.bounds, builder.by_priority);
        let is_alike = matches!(bounds, Bounds::Share { .. }) == self.shared.share.is_some();
        if is_alike {
            self.shared.set_max(bounds);
            self.shared.ranking.set_by_priority(by_priority);
            let now = self.shared.clock.now();
            self.shared.regulator.replace(builder.into_settings().0, now, &*self.shared);
        }
        is_alike
    }
}

// Relaxed: settings and counts that order nothing.
impl<C> LimitCore<C> {
    #[inline]
    fn turn_if_due(&self, now: Timestamp) {
        if self.regulator.is_due(now) {
            self.regulator.turn(now, self);
        }
    }

    /// Counts an arrival, and returns whether it goes ahead, in which case it is in flight.
    #[inline]
    fn try_enter(&self, priority: Priority) -> bool {
        let standing = self.ranking.arrive(priority);
        let goes_ahead = match &self.share {
            Some(share) => standing.map_or_else(|| share.take(), |it| it != Standing::Below),
            None => true,
        };
        let in_flight = match goes_ahead {
            true => self.in_flight.try_enter(|limit| self.room(standing, limit)),
            false => None,
        };
        in_flight.inspect(|in_flight| self.regulator.saw_in_flight(*in_flight)).is_some()
    }

    fn enter_beyond(&self) {
        let in_flight = self.in_flight.try_enter(|_| u32::MAX);
        in_flight.into_iter().for_each(|in_flight| self.regulator.saw_in_flight(in_flight));
    }

    #[inline]
    fn room(&self, standing: Option<Standing>, limit: u32) -> u32 {
        match standing {
            Some(standing) => standing.room(limit, self.max.load(Ordering::Relaxed)),
            None => limit,
        }
    }

    fn set_max(&self, bounds: Bounds) {
        if let Bounds::Concurrency { max, .. } = bounds {
            self.max.store(max, Ordering::Relaxed);
        }
    }
}

impl<C> Regulated for LimitCore<C> {
    fn kind(&self) -> LimitKind {
        if self.share.is_some() { LimitKind::Share } else { LimitKind::Concurrency }
    }

    fn in_flight(&self) -> u32 {
        self.in_flight.read().1
    }

    fn apply(&self, limit: f64, _now: Timestamp) {
        match &self.share {
            Some(share) => share.set_share(limit),
            None => self.in_flight.set_limit(permits(limit)),
        }
    }

    fn begin_anew(&self, _now: Timestamp) {
        self.ranking.begin_anew();
    }

    fn end_window(&self, window: &Window, limit: f64) {
        self.ranking.end_window(window, self.share.is_some().then_some(limit));
    }
}

impl<C> Clone for AdaptiveLimit<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<C> fmt::Debug for AdaptiveLimit<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, in_flight) = self.shared.in_flight.read();
        f.debug_struct("AdaptiveLimit")
            .field("limit", &limit)
            .field("in_flight", &in_flight)
            .finish_non_exhaustive()
    }
}
