//! Limits on how often, by a quota that follows load.

mod builder;
mod course;
mod range;

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::time::Duration;

pub use self::builder::AdaptiveRateBuilder;
use self::course::{Course, Terms};
use self::range::RateRange;
use super::priority::Standing;
use super::ranking::Ranking;
use super::regulated::Regulated;
use super::regulator::Regulator;
use super::{AdaptiveStatus, Ending, LimitKind, Priority, Window};
use crate::algorithm::Word;
use crate::sync::lock_plain;
use crate::table::By;
use crate::{Clock, Decision, Error, Quota, SystemClock, Table, Timestamp};

/// Limits calls per key by a quota that moves between two others.
///
/// A token bucket per key, whose rate and burst a [`Controller`](super::Controller) moves: the
/// classic use keeps the load of the processor near a target.
///
/// Nobody gains by a change. What a caller has left it keeps, in tokens, up to the new burst:
/// one that is exhausted stays so, and in any time `t` a caller gets at most `burst + rate·t` of
/// the highest quota that was in force in it, never one more, unless time goes back by a minute or
/// more. A change costs the same for any number of callers.
///
/// ```
/// use spillgate::adaptive::{AdaptiveRate, Cpu, Load};
///
/// let rate = AdaptiveRate::<str>::builder(Load::new(0.8), "10/s".parse()?..="200/s".parse()?)
///     .signal(Cpu::machine())
///     .build()?;
/// assert!(rate.check("203.0.113.7").is_allowed());
/// assert_eq!(rate.quota(), "100/s".parse()?);
/// # Ok::<(), spillgate::Error>(())
/// ```
pub struct AdaptiveRate<K: ?Sized, C = SystemClock> {
    table: Table,
    clock: C,
    moving: Moving,
    regulator: Regulator,
    key: PhantomData<fn(&K)>,
}

/// What a step changes.
struct Moving {
    range: Mutex<RateRange>,
    course: Course,
    ranking: Ranking,
}

impl<K: Hash + ?Sized, C: Clock> AdaptiveRate<K, C> {
    /// Spends a call of a key, if it is allowed.
    pub fn check(&self, key: &K) -> Decision {
        self.check_at(key, 1, Priority::default(), self.clock.now())
    }

    /// Spends `cost` of a key at a time, if it is allowed and the priority is not too low.
    pub fn check_at(&self, key: &K, cost: u64, priority: Priority, now: Timestamp) -> Decision {
        self.turn_if_due(now);
        let standing = self.moving.ranking.arrive(priority);
        let decision = self.decide(key, cost, standing, now, |terms, word, real| {
            let (decision, spent) = Decision::of(terms.bucket(), real, now, cost);
            (decision, spent.map(|_| terms.spend(word, now, cost)))
        });
        if decision.is_denied() {
            self.refuse();
        }
        decision
    }

    /// What [`check_at`](Self::check_at) would answer. Counts nothing: a call that is refused for
    /// this answer is one for [`refuse_at`](Self::refuse_at).
    pub fn peek_at(&self, key: &K, cost: u64, priority: Priority, now: Timestamp) -> Decision {
        self.turn_if_due(now);
        let standing = self.moving.ranking.peek(priority);
        self.decide(key, cost, standing, now, |terms, _, real| {
            (Decision::peek(terms.bucket(), real, now, cost), None)
        })
    }

    /// Counts a call that was refused because of what [`peek_at`](Self::peek_at) said.
    pub fn refuse_at(&self, priority: Priority, now: Timestamp) {
        self.turn_if_due(now);
        let _ = self.moving.ranking.arrive(priority);
        self.refuse();
    }

    /// Returns `amount` to a key, but never more than it has spent.
    pub fn refund_at(&self, key: &K, amount: u64, now: Timestamp) {
        let terms = self.moving.course.terms();
        let (bucket, time) = (terms.table_bucket(), terms.table_time(now));
        let step = |_: &_, word| {
            let refunded = terms.refund(word, now, amount);
            ((), (refunded != word).then_some(refunded))
        };
        let (caller, when_full) = (self.table.fingerprint(key), self.table.when_full());
        // A caller that is not in the table has nothing spent, and does not enter it.
        let _ = self.table.update_here(caller, By::Call(&bucket), time, when_full, step);
    }

    /// Notes how a call ended, and how long it took.
    pub fn record_at(&self, ending: Ending, latency: Duration, now: Timestamp) {
        self.record_n_at(ending, latency, 1, now);
    }

    /// [`record_at`](Self::record_at) for `count` calls that ended alike.
    pub fn record_n_at(&self, ending: Ending, latency: Duration, count: u32, now: Timestamp) {
        self.turn_if_due(now);
        self.regulator.record(ending, latency, count);
    }

    /// The quota now.
    #[must_use]
    pub fn quota(&self) -> Quota {
        lock_plain(&self.moving.range).quota(self.regulator.limit())
    }

    /// Where the limit is now, and why. The limit is in calls per second; nobody knows how many are
    /// in flight.
    #[must_use]
    pub fn status(&self) -> AdaptiveStatus {
        self.regulator.status(0)
    }

    /// How many callers were evicted while they had something spent.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.table.evictions()
    }

    /// Changes the quotas between which the rate moves, by the clock of this one. The rate stays, if
    /// it is between them, and so does what callers have left, up to the new burst.
    ///
    /// # Errors
    ///
    /// As for [`build`](AdaptiveRateBuilder::build); if the maximum is more than four times the one
    /// it was built with. Then nothing changes.
    pub fn set_range(&self, range: RangeInclusive<Quota>) -> Result<(), Error> {
        self.set_range_at(&range, self.clock.now())
    }

    /// [`set_range`](Self::set_range) at a given time.
    ///
    /// # Errors
    ///
    /// As for [`set_range`](Self::set_range).
    pub fn set_range_at(&self, range: &RangeInclusive<Quota>, now: Timestamp) -> Result<(), Error> {
        let range = self.moving.expect(range)?;
        *lock_plain(&self.moving.range) = range;
        self.regulator.set_bounds(range.rates(), now, &self.moving);
        Ok(())
    }

    /// Checks that [`set_range`](Self::set_range) and [`reconfigure`](Self::reconfigure) would
    /// accept these quotas.
    ///
    /// # Errors
    ///
    /// As for [`set_range`](Self::set_range).
    pub fn expect_range(&self, range: &RangeInclusive<Quota>) -> Result<(), Error> {
        self.moving.expect(range).map(drop)
    }

    /// Changes the controller, the signal, the quotas, and whether calls are shed by priority. The
    /// rate stays, if it is between the quotas; the clock, the capacity, and what callers have
    /// spent stay.
    ///
    /// # Errors
    ///
    /// As for [`set_range`](Self::set_range).
    pub fn reconfigure<D: Clock>(&self, builder: AdaptiveRateBuilder<K, D>) -> Result<(), Error> {
        let range = self.moving.expect(&builder.range)?;
        self.moving.ranking.set_by_priority(builder.by_priority);
        *lock_plain(&self.moving.range) = range;
        let settings = builder.into_settings(&range).0;
        self.regulator.replace(settings, self.clock.now(), &self.moving);
        Ok(())
    }

    /// Decides by a word, and by what it is in real time.
    #[inline]
    fn decide(
        &self,
        key: &K,
        cost: u64,
        standing: Option<Standing>,
        now: Timestamp,
        decide: impl Fn(Terms, Word, Word) -> (Decision, Option<Word>),
    ) -> Decision {
        let terms = self.moving.course.terms();
        let (bucket, time) = (terms.table_bucket(), terms.table_time(now));
        let reserve = reserve(standing, terms.burst(), cost);
        let step = |_: &_, word| {
            let real = terms.reserving(terms.to_real(word), now, reserve);
            decide(terms, word, real)
        };
        let (caller, when_full) = (self.table.fingerprint(key), self.table.when_full());
        match self.table.update_here(caller, By::Call(&bucket), time, when_full, step) {
            Ok(decision) => decision,
            Err(full) => {
                let after = full.decision(time, cost).retry_after();
                let nanos = after.map(|after| terms.nanos(after.as_nanos() as u64));
                let (bucket, word) = (terms.bucket().into(), Word::from_bits(now.as_nanos()));
                Decision::full(bucket, word, now, cost, nanos.map(Duration::from_nanos))
            }
        }
    }

    #[inline]
    fn turn_if_due(&self, now: Timestamp) {
        if self.regulator.is_due(now) {
            self.regulator.turn(now, &self.moving);
        }
    }

    fn refuse(&self) {
        self.regulator.refuse();
    }
}

impl Moving {
    /// A range that this one can change to.
    fn expect(&self, range: &RangeInclusive<Quota>) -> Result<RateRange, Error> {
        let range = RateRange::new(range)?;
        self.course.expect(&range)?;
        Ok(range)
    }
}

impl Regulated for Moving {
    fn kind(&self) -> LimitKind {
        LimitKind::Rate
    }

    fn in_flight(&self) -> u32 {
        0
    }

    fn apply(&self, limit: f64, now: Timestamp) {
        let quota = lock_plain(&self.range).quota(limit);
        self.course.bend(&quota, now);
    }

    fn begin_anew(&self, now: Timestamp) {
        self.course.begin_anew(now);
        self.ranking.begin_anew();
    }

    fn end_window(&self, window: &Window, _limit: f64) {
        self.ranking.end_window(window, None);
    }
}

/// How many tokens of a burst are for others: of a call whose priority is too low, a quarter. But a
/// call that needs more than the rest goes ahead when the bucket is full: otherwise it never would.
#[inline]
fn reserve(standing: Option<Standing>, burst: u64, cost: u64) -> u64 {
    match standing {
        Some(Standing::Below) => (burst / 4).max(1).min(burst.saturating_sub(cost.max(1))),
        _ => 0,
    }
}

impl<K: ?Sized, C> fmt::Debug for AdaptiveRate<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quota = lock_plain(&self.moving.range).quota(self.regulator.limit());
        f.debug_struct("AdaptiveRate").field("quota", &quota).finish_non_exhaustive()
    }
}
