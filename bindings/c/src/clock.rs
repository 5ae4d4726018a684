use std::time::Duration;

use spillgate::{Clock, ManualClock, Timestamp};

use crate::arguments::place;
use crate::boundary::status;
use crate::error::{Result, sg_status};
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
        // SAFETY: NULL, or a place for a pointer.
        let place = unsafe { place("clock", clock) }?;
        place.write(CLOCKS.put(ManualClock::new(Timestamp::from_nanos(now_ns))).cast());
        Ok(())
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
        // SAFETY: NULL or a handle; NULL, or a place for a number.
        let (clock, place) = unsafe { (CLOCKS.get(clock.cast())?, place("now_ns", now_ns)?) };
        place.write(clock.now().as_nanos());
        Ok(())
    })
}

/// Frees a clock and sets the pointer to NULL. A NULL pointer, or one to NULL, is left alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_clock_free(clock: *mut *mut sg_clock) -> sg_status {
    // SAFETY: NULL, or a place with NULL or a handle.
    status(|| unsafe { CLOCKS.free_at(clock.cast()) })
}
