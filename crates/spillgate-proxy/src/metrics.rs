//! Metrics of the proxy.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use spillgate::adaptive::AdaptiveStatus;

use spillgate_net::metrics::{counters, gauges};
use spillgate_net::{ConnectionCount, OpenConnection};

use super::Proxy;
use super::failure::Failure;
use super::upstream::Upstream;

#[derive(Debug, Default)]
pub(super) struct Stats {
    refused: AtomicU64,
    switched: ConnectionCount,
    /// By status class.
    requests: [AtomicU64; CLASSES.len()],
    cut: AtomicU64,
    failures: [AtomicU64; Failure::KINDS.len()],
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

// Relaxed throughout: counts order nothing.
impl Stats {
    /// Counts an upgraded connection for as long as the result lives.
    pub(super) fn switched(&self) -> OpenConnection<'_> {
        self.switched.open()
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1).min(CLASSES.len() - 1);
        self.requests[class].fetch_add(1, Ordering::Relaxed);
    }

    /// A response was incomplete, so its status says nothing.
    pub(super) fn cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self, failure: &Failure) {
        self.failures[failure.kind()].fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct ProxyMetrics(pub(crate) Arc<Proxy>);

impl Collector for ProxyMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.clients(&mut encoder)?;
        self.requests(&mut encoder)?;
        self.upstreams(&mut encoder)
    }
}

impl ProxyMetrics {
    fn clients(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let stats = &self.0.stats;
        let switched = stats.switched.read();
        let help = "Connections upgraded to another protocol, such as WebSocket";
        counters(encoder, "proxy_upgrades", help, [([], switched.accepted)])?;
        let help = "Upgraded connections currently open";
        gauges(encoder, "proxy_open_upgrades", help, [([], switched.open)])
    }

    fn requests(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let stats = &self.0.stats;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let requests = CLASSES.iter().zip(&stats.requests);
        let requests = requests.chain([(&"incomplete", &stats.cut)]);
        let requests = requests.map(|(class, count)| ([("status", *class)], read(count)));
        counters(encoder, "proxy_requests", "Requests to the proxy, by status class", requests)?;
        let help = "Malformed requests, refused unparsed";
        counters(encoder, "proxy_unreadable", help, [([], read(&stats.refused))])?;
        let failures = Failure::KINDS.iter().zip(&stats.failures);
        let failures = failures.map(|(kind, count)| ([("kind", *kind)], read(count)));
        counters(
            encoder,
            "proxy_failures",
            "Requests without a complete response from an upstream",
            failures,
        )
    }

    fn upstreams(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let state = self.0.state.load();
        let all = state.upstreams.all();
        let names: Vec<_> = all.iter().map(|upstream| upstream.url.to_string()).collect();
        let each = |value: fn(&Upstream) -> u64| {
            let values = names.iter().zip(all);
            let value = move |(name, upstream): (_, &Arc<Upstream>)| {
                let name: &String = name;
                ([("upstream", name.as_str())], value(upstream))
            };
            values.map(value).collect::<Vec<_>>()
        };
        let help = "Whether an upstream passes its health checks and is reachable";
        let healthy = each(|upstream| u64::from(upstream.is_healthy()));
        gauges(encoder, "proxy_upstream_healthy", help, healthy)?;
        let in_flight = each(|upstream| upstream.in_flight() as u64);
        let help = "Requests in flight to an upstream";
        gauges(encoder, "proxy_upstream_requests", help, in_flight)?;
        let cut = each(Upstream::cut);
        let help = "Incomplete responses of an upstream";
        counters(encoder, "proxy_upstream_cut_responses", help, cut)?;
        let idle = each(|upstream| upstream.idle_connections() as u64);
        let help = "Idle connections to an upstream";
        gauges(encoder, "proxy_upstream_idle_connections", help, idle)?;
        let help = "Time until the head of an upstream's response";
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor("proxy_upstream_seconds", help, None, kind)?;
        for (name, upstream) in names.iter().zip(all) {
            let labels = [("upstream", name.as_str())];
            upstream.latency().encode(family.encode_family(&labels)?)?;
        }
        self.limits(encoder)
    }

    /// Of adaptive limits, if there are any.
    fn limits(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let state = self.0.state.load();
        let limits = state.upstreams.all().iter().filter_map(|upstream| {
            upstream.limit_status().map(|status| (upstream.url.to_string(), status))
        });
        let limits: Vec<_> = limits.collect();
        if limits.is_empty() {
            return Ok(());
        }
        let limit = limits.iter().map(|(name, status)| (name, status.limit));
        let help = "Adaptive limit of an upstream: requests in flight, or a share of requests";
        levels(encoder, "proxy_upstream_limit", help, limit)?;
        let signals = limits.iter().filter_map(|(name, status)| Some((name, status.signal?)));
        let help = "What the controller of an upstream's limit saw last: seconds, or a share";
        levels(encoder, "proxy_upstream_limit_signal", help, signals)?;
        let reasons = limits.iter().map(|(name, status)| {
            ([("upstream", name.as_str()), ("reason", status.reason.name())], 1)
        });
        let help = "Why the adaptive limit of an upstream was moved or held last";
        gauges(encoder, "proxy_upstream_limit_reason", help, reasons)?;
        let counts = |count: fn(&AdaptiveStatus) -> u64| {
            limits.iter().map(move |(name, status)| ([("upstream", name.as_str())], count(status)))
        };
        let help = "Steps that moved the adaptive limit of an upstream";
        counters(encoder, "proxy_upstream_limit_changes", help, counts(|status| status.changes))?;
        let help = "Requests that an upstream at its adaptive limit did not get";
        counters(encoder, "proxy_upstream_shed", help, counts(|status| status.refused))
    }
}

/// Encodes a family of gauges that are no whole numbers, by upstream.
fn levels<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a String, f64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (upstream, value) in values {
        let labels = [("upstream", upstream.as_str())];
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
