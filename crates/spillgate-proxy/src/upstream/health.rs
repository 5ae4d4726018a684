use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, Uri};
use tokio::time::Instant;
use tracing::{info, warn};

use super::Upstream;
use crate::body::RequestBody;
use crate::failure::Failure;
use crate::host;

/// Whether an upstream is likely to answer.
#[derive(Debug)]
pub(super) struct Health {
    /// The zero of times.
    origin: Instant,
    /// Consecutive failures to connect.
    failures: AtomicU32,
    /// End of the back-off, in milliseconds; 0 if there is none.
    backoff_until: AtomicU64,
    is_unhealthy: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
            failures: AtomicU32::new(0),
            backoff_until: AtomicU64::new(0),
            is_unhealthy: AtomicBool::new(false),
        }
    }
}

/// The back-off of an unreachable upstream: it doubles from the first to the longest.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

// Relaxed throughout: a request that sees it late fails to connect, and tries another upstream.
impl Health {
    pub(super) fn connected(&self) {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.backoff_until.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn failed(&self) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).min(10);
        let backoff = (FIRST * (1 << failures)).min(LONGEST);
        self.backoff_until.store(self.now() + millis(backoff).max(1), Ordering::Relaxed);
    }

    /// Records a health check. True if its result changed.
    pub(super) fn checked(&self, is_healthy: bool) -> bool {
        self.is_unhealthy.swap(!is_healthy, Ordering::Relaxed) == is_healthy
    }

    pub(super) fn passes_checks(&self) -> bool {
        !self.is_unhealthy.load(Ordering::Relaxed)
    }

    pub(super) fn is_backed_off(&self) -> bool {
        match self.backoff_until.load(Ordering::Relaxed) {
            0 => false,
            until => self.now() < until,
        }
    }

    fn now(&self) -> u64 {
        millis(self.origin.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Upstream {
    /// Checks the health of the upstream: any status below 400 passes.
    pub(super) async fn probe(self: &Arc<Self>, path: &PathAndQuery) {
        let answered = self.check(path).await;
        let is_healthy = answered.as_ref().is_ok_and(|status| *status < 400);
        if !self.health.checked(is_healthy) {
            return;
        }
        let upstream = self.url.to_string();
        match answered {
            _ if is_healthy => info!(upstream, "upstream is healthy again"),
            Ok(status) => warn!(upstream, status, "upstream is unhealthy"),
            Err(error) => warn!(upstream, %error, "upstream is unhealthy"),
        }
    }

    async fn check(self: &Arc<Self>, path: &PathAndQuery) -> Result<u16, Failure> {
        let mut request = Request::new(RequestBody::default());
        *request.uri_mut() = Uri::from(path.clone());
        let headers = request.headers_mut();
        host::set(headers, &self.url.authority);
        headers.insert(USER_AGENT, HeaderValue::from_static("spillgate"));
        let answered = self.send(request, false).await.map_err(|unanswered| unanswered.why)?;
        // The rest of the response is discarded with its connection.
        Ok(answered.response.status().as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_back_off_of_an_unreachable_upstream_doubles() {
        let health = Health::default();
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            health.failed();
            tokio::time::advance(Duration::from_secs(seconds) - Duration::from_millis(10)).await;
            assert!(health.is_backed_off(), "{seconds}");
            tokio::time::advance(Duration::from_millis(20)).await;
            assert!(!health.is_backed_off(), "{seconds}");
        }
        health.failed();
        health.connected();
        assert!(!health.is_backed_off());
        health.failed();
        tokio::time::advance(Duration::from_millis(1010)).await;
        assert!(!health.is_backed_off(), "it starts over");
    }
}
