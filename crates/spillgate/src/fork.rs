//! Limiters in the child of a `fork`, for programs in languages that use it.
//!
//! A child has a copy of every limiter with what was spent until then, and only the thread that
//! forked. A lock that another thread held at that moment would never be released there. So
//! [hold](fn@hold) all of them around the `fork`, in a handler of `pthread_atfork`.

use std::fmt;
use std::sync::MutexGuard;

use crate::limiter::LimiterLocks;
use crate::{Limiter, clock, hasher, limiter};

/// Every lock of some limiters, and of what all limiters share. A call that needs one waits until
/// this is dropped: so make none in the thread that holds it.
#[must_use = "the locks are released when it is dropped"]
pub struct Held<'l> {
    _limiters: Vec<LimiterLocks<'l>>,
    _clock: Option<MutexGuard<'static, clock::Last>>,
    _threads: MutexGuard<'static, limiter::FreeIndices>,
    _seeds: MutexGuard<'static, hasher::KnownKeys>,
}

/// Takes the locks of all limiters that are used in the child, and those that they share.
///
/// One limiter must have been built before, and none may be under construction: else the child
/// may find a shared part half initialised. Waits for calls that hold a lock: as long as the
/// slowest of them takes, which is a change of quota, 10 ms per million callers.
///
/// ```
/// let limiter: spillgate::Limiter<str> = spillgate::Limiter::new("10/s")?;
/// let held = spillgate::fork::hold([&limiter]);
/// // `fork` here, and drop what is held in both processes.
/// drop(held);
/// assert!(limiter.check("alice").is_allowed());
/// # Ok::<(), spillgate::Error>(())
/// ```
pub fn hold<'l, K: ?Sized + 'l, C: 'l, S: 'l>(
    limiters: impl IntoIterator<Item = &'l Limiter<K, C, S>>,
) -> Held<'l> {
    // In the order in which calls take them.
    Held {
        _limiters: limiters.into_iter().map(Limiter::hold_locks).collect(),
        _clock: clock::hold_system(),
        _threads: limiter::hold_threads(),
        _seeds: hasher::hold_known(),
    }
}

impl fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("limiters", &self._limiters.len()).finish_non_exhaustive()
    }
}
