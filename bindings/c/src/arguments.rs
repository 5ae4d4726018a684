//! What C programs pass: keys, texts, and places for results.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::slice;

use spillgate_bindings::{ANONYMOUS, Error, ErrorCode, key_or_anonymous};

use crate::error::{Result, error, invalid, null, sg_status};

/// As the length of a key: it ends at its first NUL. In the header, as all constants that cbindgen
/// cannot write, by `cbindgen.toml`.
pub const SG_CSTR: usize = usize::MAX;

/// The longest key, in bytes: a longer one is more likely a mistake than a caller.
pub const SG_MAX_KEY: usize = 1_048_576;

/// A key of a caller. Without one, it is that of anonymous callers.
///
/// # Safety
///
/// The pointer is NULL, or to so many bytes, or to a string that ends with NUL.
#[inline(always)]
pub(crate) unsafe fn key<'k>(key: *const c_char, length: usize) -> Result<&'k [u8]> {
    match length {
        1..=SG_MAX_KEY if !key.is_null() => {
            // SAFETY: there are so many bytes.
            Ok(unsafe { slice::from_raw_parts(key.cast(), length) })
        }
        // SAFETY: the string ends with NUL.
        SG_CSTR => unsafe { string_key(key) },
        0 => Ok(ANONYMOUS),
        _ => Err(wrong_length(key, length)),
    }
}

/// A key that ends with NUL.
///
/// # Safety
///
/// The pointer is NULL, or to a string that ends with NUL.
#[inline(always)]
pub(crate) unsafe fn string_key<'k>(key: *const c_char) -> Result<&'k [u8]> {
    if key.is_null() {
        return Ok(ANONYMOUS);
    }
    // SAFETY: the string ends with NUL.
    let bytes = unsafe { CStr::from_ptr(key) }.to_bytes();
    if bytes.len() > SG_MAX_KEY {
        return Err(wrong_length(key, bytes.len()));
    }
    Ok(key_or_anonymous(bytes))
}

#[cold]
#[inline(never)]
fn wrong_length(key: *const c_char, length: usize) -> sg_status {
    if key.is_null() {
        return invalid(&format!("key is NULL, but its length is {length}; use 0 for no key"));
    }
    invalid(&format!(
        "key of {length} bytes; use at most {SG_MAX_KEY}, or SG_CSTR for a string that ends with NUL"
    ))
}

/// A text, if there is one.
///
/// # Safety
///
/// The pointer is NULL or to a string that ends with NUL, which outlives the result.
pub(crate) unsafe fn text<'t>(name: &str, text: *const c_char) -> Result<Option<&'t str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the string ends with NUL.
    let bytes = unsafe { CStr::from_ptr(text) };
    match bytes.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(wrong) => Err(error(Error::new(
            ErrorCode::Encoding,
            format!("{name} {bytes:?} is not UTF-8 from byte {} on", wrong.valid_up_to()),
        ))),
    }
}

/// A text that must be there.
///
/// # Safety
///
/// As for [`text`].
pub(crate) unsafe fn required<'t>(name: &str, value: *const c_char) -> Result<&'t str> {
    // SAFETY: the caller's promise.
    unsafe { text(name, value) }?.ok_or_else(|| null(name))
}

/// A place for a result, which must be there.
///
/// # Safety
///
/// The pointer is NULL, or what it points to can be written.
#[inline(always)]
pub(crate) unsafe fn place<'p, T>(name: &str, place: *mut T) -> Result<&'p mut MaybeUninit<T>> {
    // SAFETY: nothing is read that was not written.
    unsafe { place.cast::<MaybeUninit<T>>().as_mut() }.ok_or_else(|| null(name))
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
