//! Sources of time.

mod manual;
mod system;

pub use self::manual::ManualClock;
pub use self::system::SystemClock;
pub(crate) use self::system::{Last, hold_system};
use crate::Timestamp;

/// A source of time.
///
/// A limiter reads its clock once per call, except in methods that take a time. Time may go
/// backwards: it never allows a call that would be denied if time had stopped instead.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}
