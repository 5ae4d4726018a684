use std::time::Duration;

use spillgate_proxy::ClientLimits;

/// Limits of a client's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Bytes of a request's head: its first line and headers. At least 8,192.
    pub head: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request's body. A policy may always have 16 MiB.
    pub body: usize,
    /// Checks of a batch.
    pub batch: usize,
    /// Time for the rest of a request from its first byte, and for a response to be read.
    pub stalled: Duration,
    /// Time until the next request.
    pub idle: Duration,
}

impl Bounds {
    /// The same for clients of the proxy.
    pub(crate) fn of_proxy(&self) -> ClientLimits {
        let mut limits = ClientLimits::default();
        limits.max_header_bytes = self.head;
        limits.max_headers = self.headers;
        limits.io_timeout = self.stalled;
        limits.idle_timeout = self.idle;
        limits
    }
}

/// Longer idle timeouts than those of common clients: nginx's is 60 s.
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
