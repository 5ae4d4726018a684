//! Counters for Prometheus.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::ClientLayer;
use crate::pace::{OTHER_HOSTS, Pacer};

impl<R> ClientLayer<R> {
    /// Adds what the layer does to a program's metrics (feature `prometheus`).
    ///
    /// | | |
    /// |---|---|
    /// | `spillgate_client_sent_total` | requests sent, including retries |
    /// | `spillgate_client_refused_total` | requests that the far side refused for a rate limit |
    /// | `spillgate_client_waited_total` | requests that had to wait before they were sent |
    /// | `spillgate_client_limited_total` | requests not sent, since they would have had to wait for too long |
    /// | `spillgate_client_queue_full_total` | requests not sent, since too many waited |
    /// | `spillgate_client_retries_total` | requests sent again |
    /// | `spillgate_client_retries_denied_total` | requests not sent again, since the retry budget was used up |
    /// | `spillgate_client_blocks_total` | how often the far side made the client stop |
    /// | `spillgate_client_in_flight` | requests in flight |
    /// | `spillgate_client_waiting` | requests that wait to be sent |
    /// | `spillgate_client_budgets` | hosts and keys with a budget of their own |
    ///
    /// There are no labels: the number of hosts is up to the program.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("spillgate_client");
        registry.register_collector(Box::new(Collected(Arc::clone(&self.shared.pacer))));
    }
}

/// Read whenever metrics are.
struct Collected(Arc<Pacer>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = self.0.settings().counters.read();
        for (name, help, count) in [
            ("sent", "Requests sent, including retries", counts.sent),
            ("refused", "Requests refused for a rate limit", counts.refused),
            ("waited", "Requests that had to wait before they were sent", counts.waited),
            ("limited", "Requests not sent, with too long to wait", counts.limited),
            ("queue_full", "Requests not sent, since too many waited", counts.queue_full),
            ("retries", "Requests sent again", counts.retries),
            (
                "retries_denied",
                "Requests not sent again for want of a retry budget",
                counts.retries_denied,
            ),
            ("blocks", "How often the far side made the client stop", counts.blocks),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(metric)?;
        }
        let status = self.0.status();
        let waiting = status.iter().map(|budget| budget.waiting as u64).sum();
        let in_flight = status.iter().map(|budget| budget.in_flight).sum();
        let budgets = status.iter().filter(|budget| &*budget.host != OTHER_HOSTS).count() as u64;
        for (name, help, value) in [
            ("in_flight", "Requests in flight", in_flight),
            ("waiting", "Requests that wait to be sent", waiting),
            ("budgets", "Hosts and keys with a budget of their own", budgets),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Collected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collected")
    }
}
