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

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: sg_status,
    message: String,
}

impl Failure {
    #[cold]
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self { status: SG_ERROR_ARGUMENT, message: message.into() }
    }

    #[cold]
    pub(crate) fn null(name: &str) -> Self {
        Self::argument(format!("{name} is NULL"))
    }

    #[cold]
    pub(crate) fn stale(name: &str) -> Self {
        let message = format!("{name} has been freed, or is a handle of another kind");
        Self { status: SG_ERROR_HANDLE, message }
    }

    #[cold]
    pub(crate) fn internal() -> Self {
        Self { status: SG_ERROR_INTERNAL, message: "a fault of libspillgate".to_owned() }
    }

    /// Makes it the last error of this thread.
    #[cold]
    pub(crate) fn report(self) -> sg_status {
        // No message has a NUL: texts of a C program cannot contain one.
        let text = CString::new(self.message).unwrap_or_default();
        // A thread that is exiting has no last error any more.
        let _ = LAST.try_with(|last| last.replace(text));
        self.status
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        let status = match error.code() {
            ErrorCode::Encoding => SG_ERROR_ENCODING,
            ErrorCode::Quota => SG_ERROR_QUOTA,
            ErrorCode::Algorithm => SG_ERROR_ALGORITHM,
            ErrorCode::Capacity => SG_ERROR_CAPACITY,
            ErrorCode::Tier => SG_ERROR_TIER,
            _ => SG_ERROR_ARGUMENT,
        };
        Self { status, message: error.to_string() }
    }
}

impl From<spillgate::Error> for Failure {
    #[cold]
    fn from(error: spillgate::Error) -> Self {
        Error::from(error).into()
    }
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
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}
