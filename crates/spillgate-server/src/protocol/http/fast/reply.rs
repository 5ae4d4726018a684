use std::io::Write;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::{CONNECTION, HeaderValue};
use httpdate::HttpDate;
use spillgate::{Clock, SystemClock};

use crate::protocol::http::reply::{JSON, Reply};

#[derive(Debug, Default)]
pub(super) struct Replies {
    bytes: Vec<u8>,
    document: Vec<u8>,
    /// The current second, and its date.
    date: (u64, String),
    are_last: bool,
}

/// What a connection keeps for its next replies.
const KEPT: usize = 4 * 1024;

impl Replies {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn are_last(&self) -> bool {
        self.are_last
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.document.shrink_to(KEPT);
    }

    pub(super) fn document(&mut self) -> &mut Vec<u8> {
        self.document.clear();
        &mut self.document
    }

    /// Adds a reply with the document.
    pub(super) fn send_document(&mut self) {
        self.bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: ");
        self.bytes.extend_from_slice(JSON.as_bytes());
        self.end_head(self.document.len());
        self.bytes.extend_from_slice(&self.document);
    }

    pub(super) fn send(&mut self, response: &Reply) -> StatusCode {
        let (status, body) = (response.status(), response.body());
        let reason = status.canonical_reason().unwrap_or_default();
        // Writing to memory does not fail.
        let _ = write!(self.bytes, "HTTP/1.1 {} {reason}", status.as_u16());
        for (name, value) in response.headers() {
            let _ = write!(self.bytes, "\r\n{name}: ");
            self.bytes.extend_from_slice(value.as_bytes());
        }
        self.end_head(body.len());
        self.bytes.extend_from_slice(body);
        status
    }

    /// Adds a reply that closes the connection, and returns its status.
    pub(super) fn send_last(&mut self, mut response: Reply) -> StatusCode {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        self.are_last = true;
        self.send(&response)
    }

    fn end_head(&mut self, length: usize) {
        let now = SystemClock.now().as_nanos() / 1_000_000_000;
        if self.date.0 != now {
            let date = HttpDate::from(SystemTime::UNIX_EPOCH + Duration::from_secs(now));
            self.date = (now, date.to_string());
        }
        let _ = write!(self.bytes, "\r\ncontent-length: {length}\r\ndate: ");
        self.bytes.extend_from_slice(self.date.1.as_bytes());
        self.bytes.extend_from_slice(b"\r\n\r\n");
    }
}
