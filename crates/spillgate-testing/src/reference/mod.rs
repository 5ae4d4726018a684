//! The model: what each algorithm should decide, regardless of speed.
//!
//! A rule defines an algorithm: what is spent at a given time, as an exact number, and how
//! spends and refunds change it. The fields of a decision follow from that in the same way for
//! all.

mod callers;
mod first_hit_window;
mod fixed_window;
mod interval_bucket;
mod sliding_window;
mod token_bucket;

use std::time::Duration;

use num_rational::BigRational as Rational;
use spillgate::algorithm::AnyAlgorithm;
use spillgate::{AlgorithmKind, Error, Timestamp};

use self::callers::Callers;
pub(crate) use self::first_hit_window::FirstHitWindow;
pub(crate) use self::fixed_window::FixedWindow;
pub(crate) use self::interval_bucket::IntervalBucket;
pub(crate) use self::sliding_window::SlidingWindow;
pub(crate) use self::token_bucket::TokenBucket;
use crate::exact::Nanos;
use crate::{Limit, Subject};

/// A [`Subject`] that is correct by definition.
pub trait Reference: Subject {
    /// How much more can be debited before the debt is deeper than every store must be able to
    /// represent.
    fn room_for_debt(&self, key: &str, now: Timestamp) -> u64;
}

/// The model of a limit.
///
/// # Errors
///
/// If the algorithm cannot count the quota, or cannot start empty.
pub fn reference(limit: &Limit) -> Result<Box<dyn Reference>, Error> {
    let quota = &limit.quota;
    // The model rounds to the same steps as the real algorithms.
    Ok(match limit.algorithm()? {
        AnyAlgorithm::IntervalBucket(real) => {
            Box::new(Callers::new(IntervalBucket::new(limit, &real)))
        }
        AnyAlgorithm::FixedWindow(real) if limit.kind == AlgorithmKind::FirstHitWindow => {
            Box::new(Callers::new(FirstHitWindow::new(quota, real.length(), real.resolution())))
        }
        AnyAlgorithm::FixedWindow(real) => {
            Box::new(Callers::new(FixedWindow::new(quota, real.length())))
        }
        AnyAlgorithm::SlidingWindow(_) => Box::new(Callers::new(SlidingWindow::new(quota))),
        _ => Box::new(Callers::new(TokenBucket::new(limit))),
    })
}

/// The definition of one algorithm.
pub(crate) trait Rule: Clone {
    /// The state of one caller.
    type State: Clone;

    /// The most that can be spent at once.
    fn limit(&self) -> u64;

    /// The deepest debt that a store must be able to represent.
    fn deepest(&self) -> u64 {
        2 * self.limit()
    }

    /// A caller that was idle until `idle_at`.
    fn fresh(&self, idle_at: Nanos) -> Self::State;

    /// How much of the limit is spent. Never grows with time.
    fn spent(&self, state: &Self::State, now: Nanos) -> Rational;

    /// The caller after it has spent `amount` more.
    fn take(&self, state: &Self::State, now: Nanos, amount: u64) -> Self::State;

    /// The caller after a refund of `amount`.
    fn refund(&self, state: &Self::State, now: Nanos, amount: u64) -> Self::State;

    /// How long the call of a caller that was in this state should wait.
    fn wait(&self, _before: &Self::State, _now: Nanos) -> Duration {
        Duration::ZERO
    }
}
