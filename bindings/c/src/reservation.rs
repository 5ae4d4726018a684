use std::ffi::c_char;
use std::sync::Arc;

use spillgate_bindings::Reservation;

use crate::arguments::{offer, place};
use crate::boundary::status;
use crate::check::offer_settled;
use crate::decision::sg_decision;
use crate::error::sg_status;
use crate::handle::Pool;
use crate::limiter::{called, sg_limiter};

/// A cost spent in advance, to be settled once the actual cost is known.
#[derive(Debug)]
pub struct sg_reservation(());

pub(crate) static RESERVATIONS: Pool<Reservation, 0x5367_5265> = Pool::new("reservation");

/// Spends an estimated cost in advance, for work whose cost is known only afterwards. Stores the
/// decision unless it is NULL.
///
/// If the estimate is denied, the status is `SG_OK` and `*reservation` is NULL. Otherwise end it with
/// `sg_reservation_settle`, `sg_reservation_cancel` or `sg_reservation_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_reserve(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    estimate: u64,
    decision: *mut sg_decision,
    reservation: *mut *mut sg_reservation,
) -> sg_status {
    status(|| {
        // SAFETY: NULL, or a place for a pointer.
        let place = unsafe { place("reservation", reservation) }?;
        place.write(std::ptr::null_mut());
        // SAFETY: NULL or a handle; a key of this length.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        let reserved = Reservation::new(Arc::clone(limiter), key, estimate);
        let made = reserved.as_ref().map_or_else(|denied| *denied, Reservation::decision);
        // SAFETY: NULL, or a place for a decision.
        unsafe { offer(decision, || (&made).into()) };
        if let Ok(reserved) = reserved {
            place.write(RESERVATIONS.put(reserved).cast());
        }
        Ok(())
    })
}

/// Replaces the estimate with the actual cost: debits the difference, into debt if necessary, or
/// returns it, except what has been refilled since. Stores what is left and what `max_debt` did
/// not allow to spend, unless they are NULL. Frees the reservation and sets the pointer to NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_reservation_settle(
    reservation: *mut *mut sg_reservation,
    actual: u64,
    left: *mut sg_decision,
    uncharged: *mut u64,
) -> sg_status {
    status(|| {
        // SAFETY: NULL, or a place with NULL or a handle.
        let settled = unsafe { RESERVATIONS.take_at(reservation.cast()) }?.settle(actual);
        // SAFETY: NULL, or places for both.
        unsafe { offer_settled(&settled, left, uncharged) };
        Ok(())
    })
}

/// Undoes a reservation if nothing has been spent since, and stores whether it did unless `undone`
/// is NULL. Otherwise the estimate stays spent: to leave the queue of a "leaky-shaper", where
/// only the last call can. Elsewhere settle at 0. Frees the reservation and sets the pointer to NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_reservation_cancel(
    reservation: *mut *mut sg_reservation,
    undone: *mut bool,
) -> sg_status {
    status(|| {
        // SAFETY: NULL, or a place with NULL or a handle.
        let was_undone = unsafe { RESERVATIONS.take_at(reservation.cast()) }?.cancel();
        // SAFETY: NULL, or a place for an answer.
        unsafe { offer(undone, || was_undone) };
        Ok(())
    })
}

/// Frees a reservation, whose estimate stays spent, and sets the pointer to NULL. A NULL pointer,
/// or one to NULL, is left alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_reservation_free(reservation: *mut *mut sg_reservation) -> sg_status {
    // SAFETY: NULL, or a place with NULL or a handle.
    status(|| unsafe { RESERVATIONS.free_at(reservation.cast()) })
}
