use std::time::Duration;

use spillgate::{Clock, ManualClock, Timestamp};

use crate::arguments::store;
use crate::boundary::status;
use crate::error::{Result, null, sg_status};
use crate::handle::Pool;

/// A clock that the program moves, for tests without sleeping. Any number of limiters can share
/// one; freeing it leaves them as they are.
#[derive(Debug)]
pub struct sg_clock(());

pub(crate) static CLOCKS: Pool<ManualClock, 0x5367_436c> = Pool::new("clock");

impl sg_clock {
    /// The clock of a handle, if there is one.
    ///
    /// # Safety
    ///
    /// The pointer is NULL or a handle.
    pub(crate) unsafe fn of(clock: *const Self) -> Result<Option<ManualClock>> {
        if clock.is_null() {
            return Ok(None);
        }
        // SAFETY: a handle.
        Ok(Some(unsafe { CLOCKS.get(clock.cast()) }?.clone()))
    }
}

/// Makes a clock that reads `now_ns` nanoseconds since the Unix epoch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_clock_new(now_ns: u64, clock: *mut *mut sg_clock) -> sg_status {
    status(|| {
        if clock.is_null() {
            return Err(null("clock"));
        }
        let handle = CLOCKS.put(ManualClock::new(Timestamp::from_nanos(now_ns)));
        // SAFETY: a place for a pointer.
        unsafe { store("clock", clock, handle.cast()) }
    })
}

/// Moves a clock forward.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_clock_advance(clock: *const sg_clock, by_ns: u64) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle.
        unsafe { CLOCKS.get(clock.cast()) }?.advance(Duration::from_nanos(by_ns));
        Ok(())
    })
}

/// Sets a clock, also back. That never allows a call that would be denied if time had stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_clock_set(clock: *const sg_clock, now_ns: u64) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle.
        unsafe { CLOCKS.get(clock.cast()) }?.set(Timestamp::from_nanos(now_ns));
        Ok(())
    })
}

/// Reads a clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_clock_now(clock: *const sg_clock, now_ns: *mut u64) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; a place for a number.
        unsafe { store("now_ns", now_ns, CLOCKS.get(clock.cast())?.now().as_nanos()) }
    })
}

/// Frees a clock and sets the pointer to NULL. A NULL pointer, or one to NULL, is left alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_clock_free(clock: *mut *mut sg_clock) -> sg_status {
    // SAFETY: NULL, or a place with NULL or a handle.
    status(|| unsafe { CLOCKS.free_at(clock.cast()) })
}
