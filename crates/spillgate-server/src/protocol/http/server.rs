use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use spillgate_net::metrics::{counters, gauges};

use super::events::Watchers;
use super::reservations::Reservations;
use super::{Bounds, HttpStats};
use crate::App;

/// What all connections share.
#[derive(Debug)]
pub struct HttpServer {
    pub(super) app: Arc<App>,
    pub(super) bounds: Bounds,
    pub(super) stats: HttpStats,
    pub(super) reservations: Reservations,
    pub(super) has_tls: bool,
    pub(super) watchers: Watchers,
    is_registered: AtomicBool,
}

impl HttpServer {
    /// A server for this application, with the default bounds.
    pub fn new(app: Arc<App>) -> Self {
        Self {
            app,
            bounds: Bounds::default(),
            stats: HttpStats::default(),
            reservations: Reservations::default(),
            has_tls: false,
            watchers: Watchers::default(),
            is_registered: AtomicBool::new(false),
        }
    }

    /// The application.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Bounds what a client may send, and how long it may take.
    #[must_use]
    pub fn bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Bounds the number of unsettled reservations. Beyond it, those that would expire next are
    /// evicted: what they reserved stays spent.
    #[must_use]
    pub fn reservations(self, most: usize) -> Self {
        self.reservations.set_most(most);
        self
    }

    /// Shows clients URLs of this scheme.
    #[must_use]
    pub fn tls(self, has_tls: bool) -> Self {
        Self { has_tls, ..self }
    }

    /// Shows its metrics, once: several listeners may serve the same.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        // Relaxed: nothing else depends on it.
        if !self.is_registered.swap(true, Ordering::Relaxed) {
            registry.register_collector(Box::new(HttpMetrics(Arc::clone(self))));
        }
    }
}

#[derive(Debug)]
struct HttpMetrics(Arc<HttpServer>);

impl Collector for HttpMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let HttpServer { stats, reservations, .. } = &*self.0;
        let requests = stats.requests();
        let requests =
            requests.map(|(route, status, count)| ([("route", route), ("status", status)], count));
        let help = "HTTP requests by route and status class";
        counters(&mut encoder, "http_requests", help, requests)?;
        let help = "Unsettled reservations, including expired ones";
        gauges(&mut encoder, "reservations", help, [([], reservations.len() as u64)])
    }
}
