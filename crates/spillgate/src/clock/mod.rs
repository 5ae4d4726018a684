//! Where time comes from.

mod manual;
mod system;

pub use self::manual::ManualClock;
pub use self::system::SystemClock;
use crate::Timestamp;

/// Tells the time.
///
/// A limiter reads its clock once for each call that does not bring a time of its
/// own. Time may go backwards: no call passes then that would not have passed had
/// time stood still.
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
