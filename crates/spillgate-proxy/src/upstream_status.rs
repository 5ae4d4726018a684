use std::sync::Arc;

use spillgate::adaptive::AdaptiveStatus;
use spillgate_enforce::LatencyHistogram;

use crate::Proxy;
use crate::upstream::Upstream;

/// How an upstream is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// Its URL.
    pub url: String,
    /// True if it passes its health checks and is reachable.
    pub is_healthy: bool,
    /// Requests in flight to it.
    pub in_flight: usize,
    /// Where its adaptive limit is, if it has one.
    pub limit: Option<AdaptiveStatus>,
    /// How long it takes until the head of a response, since the start.
    pub latency: Arc<LatencyHistogram>,
}

impl Proxy {
    /// How the upstreams are doing, in the order of the settings.
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        self.state.load().upstreams.all().iter().map(|upstream| upstream.status()).collect()
    }
}

impl Upstream {
    fn status(&self) -> UpstreamStatus {
        UpstreamStatus {
            url: self.url.to_string(),
            is_healthy: self.is_healthy(),
            in_flight: self.in_flight(),
            limit: self.limit_status(),
            latency: Arc::clone(self.latency()),
        }
    }
}
