use std::time::Duration;

use spillgate_proxy::ClientLimits;

/// What a client may send, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Bytes of a request's head: its first line and headers. At least 8,192.
    pub head: usize,
    /// How many headers a request may have.
    pub headers: usize,
    /// Bytes of a request's body. A policy may always have 16 MiB.
    pub body: usize,
    /// How many checks a batch may have.
    pub batch: usize,
    /// Time for the rest of a request from its first byte, and for a response to be read.
    pub stalled: Duration,
    /// Time until the next request.
    pub idle: Duration,
}

impl Bounds {
    /// Those of clients of the proxy.
    pub(crate) fn of_proxy(&self) -> ClientLimits {
        let mut limits = ClientLimits::default();
        limits.max_header_bytes = self.head;
        limits.max_headers = self.headers;
        limits.io_timeout = self.stalled;
        limits.idle_timeout = self.idle;
        limits
    }
}

/// Idle connections stay longer than those who call keep them: 60 s is nginx's default.
impl Default for Bounds {
    fn default() -> Self {
        Self {
            head: 16 * 1024,
            headers: 100,
            body: 1024 * 1024,
            batch: 1_000,
            stalled: Duration::from_secs(30),
            idle: Duration::from_secs(90),
        }
    }
}
