//! What every function does on the way out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Result, fail, sg_status};

/// Runs a call, and returns its status. A panic becomes an internal error: no lock of the library
/// guards state that a panic leaves half changed.
#[inline(always)]
pub(crate) fn status(call: impl FnOnce() -> Result<()>) -> sg_status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => sg_status::SG_OK,
        Ok(Err(status)) => status,
        Err(_) => fault(),
    }
}

/// The same for a call that answers yes or no: an error is a no.
#[inline(always)]
pub(crate) fn answer(call: impl FnOnce() -> Result<bool>) -> bool {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => answer.unwrap_or(false),
        Err(_) => {
            fault();
            false
        }
    }
}

#[cold]
fn fault() -> sg_status {
    fail(sg_status::SG_ERROR_INTERNAL, "a fault of libspillgate")
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        assert_eq!(status(|| panic!("on purpose")), sg_status::SG_ERROR_INTERNAL);
        // SAFETY: a text that ends with NUL.
        let text = unsafe { CStr::from_ptr(crate::sg_last_error()) };
        assert_eq!(text, c"a fault of libspillgate");
        assert!(!answer(|| panic!("on purpose")));
    }
}
