//! What every function does on the way out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failure, sg_status};

/// Runs a call, and returns its status. A panic becomes an internal error: no lock of the library
/// guards state that a panic leaves half changed.
#[inline(always)]
pub(crate) fn status(call: impl FnOnce() -> Result<(), Failure>) -> sg_status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => sg_status::SG_OK,
        Ok(Err(failure)) => failure.report(),
        Err(_) => Failure::internal().report(),
    }
}

/// The same for a call that answers yes or no: an error is a no.
#[inline(always)]
pub(crate) fn answer(call: impl FnOnce() -> Result<bool, Failure>) -> bool {
    let mut answer = false;
    let _ = status(|| {
        answer = call()?;
        Ok(())
    });
    answer
}
