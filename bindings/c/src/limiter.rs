use std::ffi::c_char;
use std::sync::{Arc, Once};

use spillgate::Counts;
use spillgate_bindings::{Limiter, Settings, fork};

use crate::arguments::{self, offer, place, required};
use crate::boundary::status;
use crate::clock::CLOCKS;
use crate::config::sg_config;
use crate::error::{Result, error, sg_status};
use crate::handle::Pool;
use crate::reservation::RESERVATIONS;

/// A rate limiter: one quota, any number of callers, each with its own allowance.
///
/// Every function can be called from any number of threads at the same time, except that a limiter
/// must not be freed while another thread uses it.
#[derive(Debug)]
pub struct sg_limiter(());

pub(crate) static LIMITERS: Pool<Arc<Limiter>, 0x5367_4c69> = Pool::new("limiter");

/// The limiter of a handle.
///
/// # Safety
///
/// The pointer is NULL or a handle, which is not freed while the result is in use.
#[inline(always)]
pub(crate) unsafe fn limiter<'l>(handle: *const sg_limiter) -> Result<&'l Arc<Limiter>> {
    // SAFETY: the caller's promise.
    unsafe { LIMITERS.get(handle.cast()) }
}

/// The limiter and the key of a call.
///
/// # Safety
///
/// As for [`limiter`], and as for [a key](arguments::key).
#[inline(always)]
pub(crate) unsafe fn called<'c>(
    handle: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
) -> Result<(&'c Arc<Limiter>, &'c [u8])> {
    // SAFETY: the caller's promise.
    unsafe { Ok((limiter(handle)?, arguments::key(key, key_length)?)) }
}

/// What a limiter has decided since it was made.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct sg_counts {
    /// Allowed calls, except those of cost 0.
    pub allowed: u64,
    /// Denied calls.
    pub denied: u64,
    /// Callers evicted while they had something spent. If it keeps growing, raise `max_callers`.
    pub evictions: u64,
}

/// Makes a limiter. A NULL configuration has all defaults.
///
/// On an error, `*limiter` is NULL. Free it with `sg_limiter_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_limiter_new(
    config: *const sg_config,
    limiter: *mut *mut sg_limiter,
) -> sg_status {
    status(|| {
        // SAFETY: NULL, or a place for a pointer.
        let place = unsafe { place("limiter", limiter) }?;
        place.write(std::ptr::null_mut());
        // SAFETY: NULL, or a configuration.
        let settings = match unsafe { config.as_ref() } {
            // SAFETY: its texts are only used until the limiter is built.
            Some(config) => unsafe { config.settings() }?,
            None => Settings::default(),
        };
        let made = settings.build().map_err(error)?;
        hold_pools_in_fork();
        place.write(LIMITERS.put(made).cast());
        Ok(())
    })
}

fn hold_pools_in_fork() {
    static ADDED: Once = Once::new();
    ADDED.call_once(|| {
        fork::also_hold(|| LIMITERS.hold());
        fork::also_hold(|| CLOCKS.hold());
        fork::also_hold(|| RESERVATIONS.hold());
    });
}

/// Frees a limiter and sets the pointer to NULL. A NULL pointer, or one to NULL, is left alone, so
/// shutting down twice does no harm. Reservations can still be settled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_limiter_free(limiter: *mut *mut sg_limiter) -> sg_status {
    // SAFETY: NULL, or a place with NULL or a handle.
    status(|| unsafe { LIMITERS.free_at(limiter.cast()) })
}

/// Changes the quota of all callers without a tier or an override. What a caller has spent stays
/// spent, in tokens, up to the new burst. Takes about 10 ms per million callers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_limiter_set_quota(
    limiter: *const sg_limiter,
    quota: *const c_char,
) -> sg_status {
    // SAFETY: NULL or a handle; NULL or a text.
    status(|| unsafe {
        let quota = required("quota", quota)?;
        self::limiter(limiter)?.set_quota(quota).map_err(error)
    })
}

/// Changes the quota of a tier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_limiter_set_tier_quota(
    limiter: *const sg_limiter,
    tier: *const c_char,
    quota: *const c_char,
) -> sg_status {
    // SAFETY: NULL or a handle; NULL or texts.
    status(|| unsafe {
        let (tier, quota) = (required("tier", tier)?, required("quota", quota)?);
        self::limiter(limiter)?.set_tier_quota(tier, quota).map_err(error)
    })
}

/// What the limiter has decided since it was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_limiter_counts(
    limiter: *const sg_limiter,
    counts: *mut sg_counts,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; NULL, or a place for counts.
        let (limiter, place) = unsafe { (self::limiter(limiter)?, place("counts", counts)?) };
        let Counts { allowed, denied, evictions, .. } = limiter.counts();
        place.write(sg_counts { allowed, denied, evictions });
        Ok(())
    })
}

/// How many callers are below their full quota, except those with an override. Scans the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_limiter_active_callers(
    limiter: *const sg_limiter,
    callers: *mut usize,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; NULL, or a place for a number.
        let (limiter, place) = unsafe { (self::limiter(limiter)?, place("callers", callers)?) };
        place.write(limiter.active_callers());
        Ok(())
    })
}

/// Clears the slots of idle callers, and stores how many there were unless `purged` is NULL. Never
/// necessary: the slot of an idle caller is reused anyway. Scans the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_limiter_purge_idle(
    limiter: *const sg_limiter,
    purged: *mut usize,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle.
        let count = unsafe { self::limiter(limiter) }?.purge_idle();
        // SAFETY: NULL, or a place for a number.
        unsafe { offer(purged, || count) };
        Ok(())
    })
}
