//! What C programs pass: keys, texts, and places for results.

use std::ffi::{CStr, c_char};

use spillgate_bindings::{ANONYMOUS, Error, ErrorCode, key_or_anonymous};

use crate::error::Failure;

/// As the length of a key: it ends at its first NUL.
pub const SG_CSTR: usize = usize::MAX;

/// The longest key, in bytes: a longer length is more likely a mistake than a caller.
pub const SG_MAX_KEY: usize = 1 << 20;

/// A key of a caller. Without one, it is that of anonymous callers.
///
/// # Safety
///
/// The pointer is NULL, or to so many bytes, or to a string that ends with NUL.
#[inline(always)]
pub(crate) unsafe fn key<'k>(key: *const c_char, length: usize) -> Result<&'k [u8], Failure> {
    if key.is_null() {
        return match length {
            0 | SG_CSTR => Ok(ANONYMOUS),
            _ => Err(null_key(length)),
        };
    }
    let bytes = match length {
        // SAFETY: the string ends with NUL.
        SG_CSTR => unsafe { CStr::from_ptr(key) }.to_bytes(),
        // SAFETY: there are so many bytes.
        ..=SG_MAX_KEY => unsafe { std::slice::from_raw_parts(key.cast(), length) },
        _ => return Err(long_key(length)),
    };
    Ok(key_or_anonymous(bytes))
}

#[cold]
fn null_key(length: usize) -> Failure {
    Failure::argument(format!("key is NULL, but its length is {length}; use 0 for no key"))
}

#[cold]
fn long_key(length: usize) -> Failure {
    Failure::argument(format!(
        "key of {length} bytes; use at most {SG_MAX_KEY}, or SG_CSTR for a string that ends with NUL"
    ))
}

/// A text, if there is one.
///
/// # Safety
///
/// The pointer is NULL or to a string that ends with NUL, which outlives the result.
pub(crate) unsafe fn text<'t>(name: &str, text: *const c_char) -> Result<Option<&'t str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the string ends with NUL.
    let bytes = unsafe { CStr::from_ptr(text) };
    match bytes.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(Error::new(
            ErrorCode::Encoding,
            format!("{name} {bytes:?} is not UTF-8 from byte {} on", error.valid_up_to()),
        )
        .into()),
    }
}

/// A text that must be there.
///
/// # Safety
///
/// As for [`text`].
pub(crate) unsafe fn required<'t>(name: &str, value: *const c_char) -> Result<&'t str, Failure> {
    // SAFETY: the caller's promise.
    unsafe { text(name, value) }?.ok_or_else(|| Failure::null(name))
}

/// Writes a result to a place that must be there.
///
/// # Safety
///
/// The place is NULL or can be written.
#[inline(always)]
pub(crate) unsafe fn store<T>(name: &str, place: *mut T, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the place can be written.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes a result if the program wants it.
///
/// # Safety
///
/// The place is NULL or can be written.
#[inline(always)]
pub(crate) unsafe fn offer<T>(place: *mut T, value: impl FnOnce() -> T) {
    if !place.is_null() {
        // SAFETY: the place can be written.
        unsafe { place.write(value()) };
    }
}
