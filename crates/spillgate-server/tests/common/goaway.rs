//! Calls that a client could not send any more.

use std::error::Error;

/// Whether the server refused a call by announcing that it ends. By RFC 9113 such a call was not
/// processed: the client had not sent it, or the server has not looked at it.
pub(crate) fn is_goaway(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return error.is_go_away()
                && error.is_remote()
                && error.reason() == Some(h2::Reason::NO_ERROR);
        }
        cause = error.source();
    }
    false
}
