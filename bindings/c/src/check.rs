use std::ffi::c_char;
use std::slice;

use spillgate::{Decision, Settled};
use spillgate_bindings::Limiter;

use crate::arguments::{self, SG_CSTR, offer, place};
use crate::boundary::{answer, status};
use crate::decision::sg_decision;
use crate::error::{invalid, null, sg_status};
use crate::limiter::{called, limiter, sg_limiter};

/// Is a call of this caller allowed? Spends 1 if it is.
///
/// The key ends with NUL; NULL or "" means the caller "anonymous". False on an
/// error too: `sg_check` tells the two apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_allow(limiter: *const sg_limiter, key: *const c_char) -> bool {
    answer(|| {
        // SAFETY: NULL or a handle; NULL or a text.
        let (limiter, key) = unsafe { (self::limiter(limiter)?, arguments::string_key(key)?) };
        Ok(limiter.check(key).is_allowed())
    })
}

/// `sg_allow` for a call of any cost, and a key of any bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_allow_n(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    cost: u64,
) -> bool {
    answer(|| {
        // SAFETY: NULL or a handle; a key of this length.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        Ok(limiter.check_n(key, cost).is_allowed())
    })
}

/// Spends `cost` if all of it is available now, and stores the decision. A denial changes nothing. A
/// cost of 0 is always allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_check(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    cost: u64,
    decision: *mut sg_decision,
) -> sg_status {
    // SAFETY: the same promises.
    unsafe { decide(limiter, key, key_length, decision, |limiter, key| limiter.check_n(key, cost)) }
}

/// What `sg_check` would decide, without spending: what remains is what there is now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_peek(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    cost: u64,
    decision: *mut sg_decision,
) -> sg_status {
    // SAFETY: the same promises.
    unsafe { decide(limiter, key, key_length, decision, |limiter, key| limiter.peek_n(key, cost)) }
}

/// Stores what is decided for a caller. Without a place for it, nothing is decided.
///
/// # Safety
///
/// As for [`called`]; the place is NULL or can be written.
#[inline(always)]
unsafe fn decide(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    decision: *mut sg_decision,
    decide: impl FnOnce(&Limiter, &[u8]) -> Decision,
) -> sg_status {
    status(|| {
        // SAFETY: the caller's promises.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        // SAFETY: as above.
        let place = unsafe { place("decision", decision) }?;
        place.write((&decide(limiter, key)).into());
        Ok(())
    })
}

/// Checks many callers in order, each at a cost of 1, and stores as many decisions. Faster than one
/// by one if there are more callers than the processor's caches hold.
///
/// Without lengths, keys end with NUL. If one key is invalid, none is checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_check_many(
    limiter: *const sg_limiter,
    keys: *const *const c_char,
    key_lengths: *const usize,
    count: usize,
    decisions: *mut sg_decision,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle.
        let limiter = unsafe { self::limiter(limiter) }?;
        if count == 0 {
            return Ok(());
        }
        if keys.is_null() || decisions.is_null() {
            return Err(null(if keys.is_null() { "keys" } else { "decisions" }));
        }
        if count > MAX_BATCH {
            return Err(invalid(&format!("batch of {count}; use at most {MAX_BATCH}")));
        }
        // SAFETY: so many keys.
        let keys = unsafe { slice::from_raw_parts(keys, count) };
        let length = |index| match key_lengths.is_null() {
            true => SG_CSTR,
            // SAFETY: so many lengths.
            false => unsafe { *key_lengths.add(index) },
        };
        // SAFETY: a key of this length.
        let read = |(index, key): (usize, &_)| unsafe { arguments::key(*key, length(index)) };
        let keys = keys.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        for (index, decision) in limiter.check_many(keys).enumerate() {
            // SAFETY: a place for so many decisions.
            unsafe { decisions.add(index).write((&decision).into()) };
        }
        Ok(())
    })
}

/// The most keys of a batch: more are more likely a mistake.
const MAX_BATCH: usize = 1 << 24;

/// Spends `amount` unconditionally, into debt beyond the burst if necessary. Stores what is left
/// and what `max_debt` did not allow to spend, unless they are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_debit(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    amount: u64,
    left: *mut sg_decision,
    uncharged: *mut u64,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; a key of this length.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        // SAFETY: NULL, or places for both.
        unsafe { offer_settled(&limiter.debit_n(key, amount), left, uncharged) };
        Ok(())
    })
}

/// Stores the result of a debit or a settlement.
///
/// # Safety
///
/// The places are NULL or can be written.
pub(crate) unsafe fn offer_settled(settled: &Settled, left: *mut sg_decision, uncharged: *mut u64) {
    // SAFETY: the caller's promise.
    unsafe {
        offer(left, || (&settled.left).into());
        offer(uncharged, || settled.uncharged);
    }
}

/// Returns `amount` to a caller, but never more than it has spent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_refund(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    amount: u64,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; a key of this length.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        limiter.refund_n(key, amount);
        Ok(())
    })
}

/// Forgets what a caller has spent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_reset(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; a key of this length.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        limiter.reset(key);
        Ok(())
    })
}
