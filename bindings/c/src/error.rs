use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use spillgate_bindings::{Error, ErrorCode};

/// What a call returns. A denied call is `SG_OK`: see `sg_decision`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sg_status {
    /// The call has done its work.
    SG_OK = 0,
    /// An argument is NULL, out of range or unknown.
    SG_ERROR_ARGUMENT = 1,
    /// A text is not UTF-8.
    SG_ERROR_ENCODING = 2,
    /// A handle has been freed, or is of another kind.
    SG_ERROR_HANDLE = 3,
    /// A quota is invalid: its numbers or its text.
    SG_ERROR_QUOTA = 4,
    /// The algorithm is unknown, or cannot count the quota.
    SG_ERROR_ALGORITHM = 5,
    /// There is no memory for that many callers.
    SG_ERROR_CAPACITY = 6,
    /// A tier is unknown, duplicate or incompatible.
    SG_ERROR_TIER = 7,
    /// A fault of the library. The call may or may not have taken effect.
    SG_ERROR_INTERNAL = 8,
}

use sg_status::*;

/// The result of a part of a call. The text of an error has been set already: a status alone is
/// returned in a register, also where calls are hot.
pub(crate) type Result<T> = std::result::Result<T, sg_status>;

/// Sets the last error of this thread.
#[cold]
#[inline(never)]
pub(crate) fn fail(status: sg_status, message: &str) -> sg_status {
    // No message has a NUL: texts of a C program cannot contain one.
    let text = CString::new(message).unwrap_or_default();
    // A thread that is exiting has no last error any more.
    let _ = LAST.try_with(|last| last.replace(text));
    status
}

#[cold]
#[inline(never)]
pub(crate) fn invalid(message: &str) -> sg_status {
    fail(SG_ERROR_ARGUMENT, message)
}

#[cold]
#[inline(never)]
pub(crate) fn null(name: &str) -> sg_status {
    invalid(&format!("{name} is NULL"))
}

#[cold]
#[inline(never)]
pub(crate) fn stale(name: &str) -> sg_status {
    let message = format!("{name} has been freed, or is a handle of another kind");
    fail(SG_ERROR_HANDLE, &message)
}

/// An error of the library or of the bindings' core.
#[cold]
#[inline(never)]
pub(crate) fn error(error: impl Into<Error>) -> sg_status {
    let error = error.into();
    let status = match error.code() {
        ErrorCode::Encoding => SG_ERROR_ENCODING,
        ErrorCode::Quota => SG_ERROR_QUOTA,
        ErrorCode::Algorithm => SG_ERROR_ALGORITHM,
        ErrorCode::Capacity => SG_ERROR_CAPACITY,
        ErrorCode::Tier => SG_ERROR_TIER,
        _ => SG_ERROR_ARGUMENT,
    };
    fail(status, &error.to_string())
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why the last failed call of this thread failed: the wrong value, and what would be right.
///
/// Empty if none has failed. Valid until the next call of this thread fails. A call that succeeds
/// leaves it, so look at it only after one that has failed.
#[unsafe(no_mangle)]
pub extern "C" fn sg_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn sg_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}
