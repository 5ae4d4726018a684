//! Metrics that are read from counters elsewhere whenever they are scraped.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::{ConnectionCount, Protocol};

/// Label names and values, and the number.
pub type Labelled<'a, const N: usize> = ([(&'static str, &'a str); N], u64);

/// Encodes a family of counters. Fails if the encoder fails.
pub fn counters<'a, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = Labelled<'a, N>>,
) -> fmt::Result {
    let family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    encode(family, values, ConstCounter::<u64>::new)
}

/// Encodes a family of gauges. Fails if the encoder fails.
pub fn gauges<'a, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = Labelled<'a, N>>,
) -> fmt::Result {
    let family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    encode(family, values, ConstGauge::<u64>::new)
}

fn encode<'a, M: EncodeMetric, const N: usize>(
    mut family: MetricEncoder<'_>,
    values: impl IntoIterator<Item = Labelled<'a, N>>,
    metric: fn(u64) -> M,
) -> fmt::Result {
    for (labels, value) in values {
        if N == 0 {
            return metric(value).encode(family);
        }
        metric(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// `connections_total` and `open_connections` of all protocols, by `protocol`.
#[derive(Debug)]
pub struct ConnectionMetrics(Vec<(&'static str, Arc<ConnectionCount>)>);

impl ConnectionMetrics {
    /// Those of these protocols.
    #[must_use]
    pub fn new<'p>(protocols: impl IntoIterator<Item = &'p dyn Protocol>) -> Self {
        let count = |protocol: &dyn Protocol| (protocol.name(), Arc::clone(protocol.connections()));
        Self(protocols.into_iter().map(count).collect())
    }
}

impl Collector for ConnectionMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.0.iter().map(|(name, count)| ([("protocol", *name)], count.read()));
        let counts: Vec<_> = counts.collect();
        let accepted = counts.iter().map(|(labels, count)| (*labels, count.accepted));
        counters(&mut encoder, "connections", "Connections accepted", accepted)?;
        let open = counts.iter().map(|(labels, count)| (*labels, count.open));
        gauges(&mut encoder, "open_connections", "Connections currently open", open)
    }
}
