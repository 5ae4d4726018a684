use std::error::Error;
use std::io::{self, ErrorKind};

/// True if an error says that the request never reached the far side, so that any request can be
/// repeated: the connection was refused, or there is no way to the host.
///
/// With the feature `hyper`, also if hyper or hyper-util report that there was no connection, or that it
/// was closed or reset before any byte of the request was written to it. A reset after that is none of
/// these: the far side may have processed the request.
#[must_use]
pub fn is_not_sent(error: &(dyn Error + 'static)) -> bool {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    // A chain that contains itself would not end.
    chain.take(32).any(|error| {
        let io = error.downcast_ref::<io::Error>();
        // What such an error wraps is not among its sources.
        let wrapped = io.and_then(io::Error::get_ref).is_some_and(|error| is_not_sent(error));
        io.is_some_and(|error| is_unreachable(error.kind())) || wrapped || says_hyper(error)
    })
}

fn is_unreachable(kind: ErrorKind) -> bool {
    use ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(kind, AddrNotAvailable | ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

#[cfg(feature = "hyper")]
fn says_hyper(error: &(dyn Error + 'static)) -> bool {
    let is_canceled = error.downcast_ref().is_some_and(hyper::Error::is_canceled);
    let legacy = error.downcast_ref::<hyper_util::client::legacy::Error>();
    is_canceled || legacy.is_some_and(hyper_util::client::legacy::Error::is_connect)
}

#[cfg(not(feature = "hyper"))]
fn says_hyper(_: &(dyn Error + 'static)) -> bool {
    false
}
