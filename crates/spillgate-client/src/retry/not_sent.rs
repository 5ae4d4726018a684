use std::error::Error;
use std::io::{self, ErrorKind};

/// True if an error says that the request never reached the far side, so that any request can be
/// repeated.
///
/// With the feature `hyper`, errors of hyper and hyper-util, and what wraps them, such as reqwest's,
/// say so if there was no connection, or if it was closed before any byte of the request was written to
/// it. Otherwise an [`io::Error`] says so if the connection was refused or there is no way to the host.
/// It must be the error itself, and is taken for one of connecting: an established connection can fail
/// in the same way. For a service whose I/O errors come from both, use
/// [`not_sent_if`](crate::ClientBuilder::not_sent_if).
#[must_use]
pub fn is_not_sent(error: &(dyn Error + 'static)) -> bool {
    let verdict = chain(error).filter_map(says_hyper).reduce(|one, other| one || other);
    let mut io = chain(error).map_while(|error| error.downcast_ref::<io::Error>());
    verdict.unwrap_or_else(|| io.any(is_unreachable))
}

/// An error and its causes.
fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    // A chain that contains itself would not end.
    std::iter::successors(Some(error), |error| cause(*error)).take(32)
}

/// What an I/O error wraps is not among its sources.
fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn is_unreachable(error: &io::Error) -> bool {
    use ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(
        error.kind(),
        AddrNotAvailable | ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}

/// Whether an error of hyper or hyper-util says that nothing was sent. `None` if it is no such error.
#[cfg(feature = "hyper")]
fn says_hyper(error: &(dyn Error + 'static)) -> Option<bool> {
    use hyper_util::client::legacy;
    let legacy = error.downcast_ref().map(legacy::Error::is_connect);
    legacy.or_else(|| error.downcast_ref().map(hyper::Error::is_canceled))
}

#[cfg(not(feature = "hyper"))]
fn says_hyper(_: &(dyn Error + 'static)) -> Option<bool> {
    None
}
