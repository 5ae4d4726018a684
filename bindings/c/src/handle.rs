//! Handles: what a C program holds of a limiter, a clock or a reservation.
//!
//! A handle is a small shell around a value. When the value is freed, the shell is marked and kept,
//! so a pointer to it can still be read: a second free, or a use after it, is an error instead of a
//! crash. A shell is used again after [`KEPT`] more have been freed; a stale pointer that
//! is older than that may mean another value, but never foreign memory.

use std::any::Any;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Result, null, stale};

/// How many free shells are kept before one is used again: few enough to stay in the processor's
/// cache.
const KEPT: usize = 64;

/// The mark of a shell without a value.
const FREED: u32 = 0xdead_dead;

/// A value that a C program refers to by a pointer.
#[repr(C)]
pub(crate) struct Handle<T> {
    /// [`FREED`], or the mark of the pool. At the same place in every kind of handle, so that it tells
    /// them apart.
    mark: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a shared handle gives out `&T`, and the value to the one thread that frees it.
unsafe impl<T: Send + Sync> Sync for Handle<T> {}

/// All handles of one kind, which have its mark.
pub(crate) struct Pool<T: 'static, const MARK: u32> {
    name: &'static str,
    free: Mutex<VecDeque<&'static Handle<T>>>,
}

impl<T: Send + Sync, const MARK: u32> Pool<T, MARK> {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, free: Mutex::new(VecDeque::new()) }
    }

    /// Makes a handle of a value.
    pub(crate) fn put(&self, value: T) -> *mut Handle<T> {
        let mut free = self.free();
        let oldest = if free.len() > KEPT { free.pop_front() } else { None };
        drop(free);
        let handle = oldest.unwrap_or_else(|| {
            let value = UnsafeCell::new(MaybeUninit::uninit());
            Box::leak(Box::new(Handle { mark: AtomicU32::new(FREED), value }))
        });
        // SAFETY: the shell has no value and nobody else has it: it is new, or was in the list.
        unsafe { (*handle.value.get()).write(value) };
        // Pairs with the load in `get`: who sees the mark sees the value.
        handle.mark.store(MARK, Ordering::Release);
        std::ptr::from_ref(handle).cast_mut()
    }

    /// The value of a handle.
    ///
    /// # Safety
    ///
    /// The pointer is NULL or came from [`put`](Self::put) of any pool, and the value is not freed
    /// while it is in use.
    #[inline(always)]
    pub(crate) unsafe fn get<'h>(&self, handle: *const Handle<T>) -> Result<&'h T> {
        if handle.is_null() {
            return Err(null(self.name));
        }
        // SAFETY: a shell is never deallocated. Only its mark is borrowed: it may be of another kind.
        // Pairs with the store in `put`.
        if unsafe { &(*handle).mark }.load(Ordering::Acquire) != MARK {
            return Err(stale(self.name));
        }
        // SAFETY: a shell with this mark is of this pool, and has a value.
        Ok(unsafe { (*(*handle).value.get()).assume_init_ref() })
    }

    /// Takes the value out of a handle, which is freed by that. Of two threads, one gets it.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get), and the value is not in use.
    unsafe fn take(&self, handle: *const Handle<T>) -> Result<T> {
        if handle.is_null() {
            return Err(null(self.name));
        }
        // SAFETY: as in `get`.
        let mark = unsafe { &(*handle).mark };
        if mark.compare_exchange(MARK, FREED, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Err(stale(self.name));
        }
        // SAFETY: as in `get`, and a shell of this pool lives for ever.
        let handle: &'static Handle<T> = unsafe { &*handle };
        // SAFETY: the mark was there, so there is a value; it is gone, so nobody reads it again.
        let value = unsafe { (*handle.value.get()).assume_init_read() };
        self.free().push_back(handle);
        Ok(value)
    }

    /// Takes the value out of the handle in a place, and sets the place to NULL.
    ///
    /// # Safety
    ///
    /// The place is NULL, or has NULL or a handle whose value is not in use.
    pub(crate) unsafe fn take_at(&self, place: *mut *mut Handle<T>) -> Result<T> {
        // SAFETY: the place is NULL or can be used.
        let Some(place) = (unsafe { place.as_mut() }) else {
            return Err(null(self.name));
        };
        let handle = std::mem::replace(place, std::ptr::null_mut());
        // SAFETY: the caller's promise.
        unsafe { self.take(handle) }
    }

    /// Frees the value of the handle in a place, and sets the place to NULL. Without a handle,
    /// there is nothing to free.
    ///
    /// # Safety
    ///
    /// As for [`take_at`](Self::take_at).
    pub(crate) unsafe fn free_at(&self, place: *mut *mut Handle<T>) -> Result<()> {
        // SAFETY: the place is NULL or can be used.
        match unsafe { place.as_ref() } {
            // SAFETY: the caller's promise.
            Some(handle) if !handle.is_null() => unsafe { self.take_at(place) }.map(drop),
            _ => Ok(()),
        }
    }

    /// The lock of the pool, for `fork`.
    pub(crate) fn hold(&'static self) -> Box<dyn Any> {
        Box::new(self.free())
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<&'static Handle<T>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::sg_status::{SG_ERROR_ARGUMENT, SG_ERROR_HANDLE};

    static ONE: Pool<String, 1> = Pool::new("one");
    static OTHER: Pool<String, 2> = Pool::new("other");

    #[test]
    fn a_freed_handle_is_recognised_until_so_many_more_are_freed() {
        let first = ONE.put("first".to_owned());
        // SAFETY: handles of this pool.
        unsafe {
            assert_eq!(ONE.get(first).unwrap(), "first");
            assert_eq!(ONE.take(first).unwrap(), "first");
            for number in 0..KEPT {
                let handle = ONE.put(number.to_string());
                assert_ne!(handle, first);
                assert_eq!(ONE.get(first), Err(SG_ERROR_HANDLE));
                assert_eq!(ONE.take(first), Err(SG_ERROR_HANDLE));
                assert_eq!(ONE.take(handle).unwrap(), number.to_string());
            }
            // The oldest is the next to be used again.
            assert_eq!(ONE.put("next".to_owned()), first);
            assert_eq!(ONE.get(first).unwrap(), "next");
        }
    }

    proptest! {
        /// Against a list of what is alive and what was freed, the latest last.
        #[test]
        fn what_is_alive_is_found_and_what_was_freed_lately_is_not(
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..400),
        ) {
            let pool = Box::leak(Box::new(Pool::<usize, 3>::new("number")));
            let (mut alive, mut freed) = (Vec::new(), Vec::new());
            for (number, (frees, index)) in steps.into_iter().enumerate() {
                if frees && !alive.is_empty() {
                    let (handle, value) = alive.swap_remove(index.index(alive.len()));
                    // SAFETY: a handle of this pool.
                    prop_assert_eq!(unsafe { pool.take(handle) }, Ok(value));
                    freed.push(handle);
                } else {
                    alive.push((pool.put(number), number));
                }
                // SAFETY: handles of this pool.
                unsafe {
                    for (handle, value) in &alive {
                        prop_assert_eq!(pool.get(*handle), Ok(value));
                    }
                    for handle in freed.iter().rev().take(KEPT) {
                        prop_assert_eq!(pool.get(*handle), Err(SG_ERROR_HANDLE));
                    }
                }
            }
        }
    }

    #[test]
    fn null_and_handles_of_another_kind_are_recognised() {
        let other = OTHER.put("other".to_owned());
        // SAFETY: NULL, and handles of the same layout.
        unsafe {
            assert_eq!(ONE.get(std::ptr::null()), Err(SG_ERROR_ARGUMENT));
            assert_eq!(ONE.get(other), Err(SG_ERROR_HANDLE));
            assert_eq!(ONE.take(other), Err(SG_ERROR_HANDLE));
            assert_eq!(OTHER.take(other).unwrap(), "other");
        }
    }
}
