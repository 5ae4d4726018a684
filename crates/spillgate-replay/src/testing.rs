//! What unit tests share.

use spillgate::Timestamp;

use crate::{Headers, Record};

/// A request for a path.
pub(crate) fn record(path: &str) -> Record<'_> {
    Record {
        time: Timestamp::from_secs(1_794_889_960),
        is_whole_second: true,
        peer: [203, 0, 113, 7].into(),
        method: b"GET",
        path,
        host: None,
        user: None,
        status: 200,
        headers: Headers::new(),
    }
}
