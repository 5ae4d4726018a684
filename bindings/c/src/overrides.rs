use std::ffi::c_char;
use std::time::Duration;

use spillgate::Clock;

use crate::arguments::{offer, required};
use crate::boundary::status;
use crate::error::{error, invalid, null, sg_status};
use crate::limiter::{called, sg_limiter};

/// Gives one caller its own quota, for `for_ns` nanoseconds, or until it is removed if that is 0.
/// What it has spent stays spent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_set_override(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    quota: *const c_char,
    for_ns: u64,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; a key of this length.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        // SAFETY: NULL or a text.
        let quota = unsafe { required("quota", quota) }?;
        let set = match for_ns {
            0 => limiter.set_override(key, quota),
            _ => {
                let until = limiter.clock().now() + Duration::from_nanos(for_ns);
                limiter.set_override_until(key, quota, until)
            }
        };
        set.map_err(error)
    })
}

/// Removes a caller's own quota, and stores whether it had one unless `removed` is NULL. What
/// it has spent before and under it counts as far as it has not been refilled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_remove_override(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    removed: *mut bool,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; a key of this length.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        let quota = limiter.remove_override(key);
        // SAFETY: NULL, or a place for an answer.
        unsafe { offer(removed, || quota.is_some()) };
        Ok(())
    })
}

/// A size for the text of any quota, with its NUL.
pub const SG_QUOTA_SIZE: usize = 128;

/// Writes the quota of a caller as text: its override, its tier's or the limiter's. `SG_QUOTA_SIZE`
/// bytes are always enough; if the text and its NUL do not fit, nothing is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_quota_of(
    limiter: *const sg_limiter,
    key: *const c_char,
    key_length: usize,
    buffer: *mut c_char,
    buffer_size: usize,
) -> sg_status {
    status(|| {
        // SAFETY: NULL or a handle; a key of this length.
        let (limiter, key) = unsafe { called(limiter, key, key_length) }?;
        if buffer.is_null() {
            return Err(null("buffer"));
        }
        let text = limiter.quota_of(key).to_string();
        let needed = text.len() + 1;
        if buffer_size < needed {
            return Err(invalid(&format!("buffer_size is {buffer_size}; use at least {needed}")));
        }
        // SAFETY: a place for so many bytes.
        unsafe {
            buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
            buffer.add(text.len()).write(0);
        }
        Ok(())
    })
}
