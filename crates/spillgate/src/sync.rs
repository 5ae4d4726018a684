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

/// Locks, ignoring poison: no state that a lock here guards is left half changed by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks if nobody else has, ignoring poison too.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

#[cfg(not(spillgate_loom))]
pub(crate) use std::thread::yield_now;

#[cfg(spillgate_loom)]
pub(crate) use loom::thread::yield_now;

/// Backs off after a lost race for a word, so that its cache line moves between cores less
/// often. With two threads on one caller, a check takes 15 ns instead of 24.
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
    use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

    /// As [`lock`](super::lock), for what loom does not model.
    pub(crate) fn lock_plain<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks if nobody else has, ignoring poison too.
    pub(crate) fn try_lock_plain<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        match mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

pub(crate) use self::plain::{lock_plain, try_lock_plain};
