use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use futures_util::future::join_all;
use http::uri::PathAndQuery;

use super::connect::Connector;
use super::health::Health;
use super::http2::Http2;
use super::pool::Pool;
use super::{InFlight, LATENCIES, Timeouts, Upstream};
use spillgate_enforce::LatencyHistogram;
use spillgate_net::tls;

use crate::settings::{LimitSettings, ProxySettings, Scheme, UpstreamUrl};

#[derive(Debug)]
pub(crate) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    /// Round-robin start of the next choice.
    next: AtomicUsize,
    /// Requests in flight that each may have.
    bound: Option<usize>,
    /// The adaptive limit of each.
    limit: Option<LimitSettings>,
}

impl Upstreams {
    /// The upstreams of these settings. Of those in `known`, connections are reused if `keep`
    /// is true. Requests in flight count in any case, and limits are kept.
    pub(crate) fn new(
        settings: &ProxySettings,
        known: &[Arc<Upstream>],
        keep: bool,
    ) -> Result<Self, String> {
        let is_secure = settings.upstreams.iter().any(|url| url.scheme == Scheme::Https);
        let trusted =
            if is_secure { Some(tls::system_client(settings.ca.as_deref())?) } else { None };
        let timeouts = Timeouts {
            connect: settings.connect_timeout,
            response: settings.response_timeout,
            idle: settings.idle_timeout,
        };
        let upstream = |url: &UpstreamUrl| {
            let same = known.iter().find(|one| one.url == *url);
            // The contents of the CA file may have changed.
            if let Some(same) = same.filter(|_| keep && url.scheme != Scheme::Https) {
                return Ok(Arc::clone(same));
            }
            let in_flight = same.map(|same| Arc::clone(&same.in_flight)).unwrap_or_default();
            let limit = same.map(|same| Arc::clone(&same.limit)).unwrap_or_default();
            let latency = same.map(|same| Arc::clone(same.latency()));
            let latency = latency.unwrap_or_else(|| Arc::new(LatencyHistogram::new(&LATENCIES)));
            Ok::<_, String>(Arc::new(Upstream {
                connector: Connector::new(url, trusted.as_ref())?,
                url: url.clone(),
                timeouts,
                pool: Pool::new(settings.max_idle_per_upstream),
                http2: Http2::default(),
                health: Health::default(),
                in_flight,
                limit,
                latency,
                cut: AtomicU64::new(0),
            }))
        };
        let all = settings.upstreams.iter().map(upstream).collect::<Result<_, _>>()?;
        let (bound, limit) = (settings.max_concurrent_per_upstream, settings.limit()?);
        Ok(Self { all, next: AtomicUsize::new(0), bound, limit })
    }

    /// Puts the adaptive limits of these settings in force.
    pub(crate) fn adopt_limits(&self) {
        self.all.iter().for_each(|upstream| upstream.limit.adopt(self.limit.as_ref()));
    }

    /// Counts a request as in flight for as long as the result lives; `None` if the upstream has as
    /// many as it may.
    pub(crate) fn begin(&self, upstream: &Arc<Upstream>) -> Option<InFlight> {
        let mut in_flight = upstream.begin(self.bound)?;
        if self.limit.is_some() {
            in_flight.permit = upstream.limit.try_acquire().ok()?;
        }
        Some(in_flight)
    }

    /// The healthy upstream with the fewest requests in flight that was not tried, round-robin among
    /// equals. One in back-off is chosen only if all are.
    pub(crate) fn choose(&self, tried: &[Arc<Upstream>]) -> Option<&Arc<Upstream>> {
        if let ([only], []) = (&*self.all, tried) {
            return Some(only).filter(|only| only.health.passes_checks());
        }
        // Relaxed: two requests may choose the same one.
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.all.len().max(1);
        let (end, start) = self.all.split_at(first);
        let usable = start.iter().chain(end).filter(|upstream| {
            let is_tried = tried.iter().any(|tried| Arc::ptr_eq(tried, upstream));
            !is_tried && upstream.health.passes_checks()
        });
        usable.min_by_key(|upstream| (upstream.health.is_backed_off(), upstream.in_flight()))
    }

    pub(crate) fn all(&self) -> &[Arc<Upstream>] {
        &self.all
    }

    /// Checks the health of upstreams, and closes idle connections to them.
    pub(crate) async fn maintain(&self, health_path: Option<&PathAndQuery>) {
        let each = self.all.iter().map(|upstream| async {
            upstream.pool.evict();
            upstream.limit.log(&upstream.url);
            if let Some(path) = health_path {
                upstream.probe(path).await;
            }
        });
        join_all(each).await;
    }
}

impl Upstream {
    pub(crate) fn is_healthy(&self) -> bool {
        self.health.passes_checks() && !self.health.is_backed_off()
    }

    pub(crate) fn idle_connections(&self) -> usize {
        self.pool.len()
    }
}
