//! The metrics of adaptive limits, read from the gates.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use spillgate::adaptive::StepReason;
use spillgate_policy::AdaptiveState;

/// Of all gates together. Limits of one name in several gates count together.
#[derive(Default)]
pub(super) struct AdaptiveSums(BTreeMap<String, AdaptiveSum>);

#[derive(Default)]
struct AdaptiveSum {
    limit: f64,
    min: f64,
    max: f64,
    in_flight: u64,
    /// What it looks at, and what that says: of several, the highest.
    signal: (&'static str, Option<f64>),
    is_missing: bool,
    /// True if it limits how much is in flight.
    is_concurrency: bool,
    /// True if it is a share of all requests: of several, the lowest.
    is_share: bool,
}

impl FromIterator<AdaptiveState> for AdaptiveSums {
    fn from_iter<T: IntoIterator<Item = AdaptiveState>>(states: T) -> Self {
        let mut sums = Self::default();
        for AdaptiveState { limit, kind, signal, status, .. } in states {
            let sum = sums.0.entry(limit.to_string()).or_default();
            if kind == "share" && sum.is_share {
                // Shares do not add up.
                sum.limit = sum.limit.min(status.limit);
                sum.min = sum.min.min(status.min);
                sum.max = sum.max.max(status.max);
            } else {
                sum.limit += status.limit;
                sum.min += status.min;
                sum.max += status.max;
            }
            sum.is_share |= kind == "share";
            sum.in_flight += u64::from(status.in_flight);
            let highest = match (sum.signal.1, status.signal) {
                (Some(one), Some(other)) => Some(f64::max(one, other)),
                (one, other) => one.or(other),
            };
            sum.signal = (signal, highest);
            sum.is_missing |= status.reason == StepReason::NoSignal;
            sum.is_concurrency |= kind == "concurrency";
        }
        sums
    }
}

impl AdaptiveSums {
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let help = "Adaptive limits, where they are now";
        self.gauges(encoder, "adaptive_limit", help, |sum| Some(sum.limit))?;
        let help = "The lowest that an adaptive limit can be";
        self.gauges(encoder, "adaptive_limit_min", help, |sum| Some(sum.min))?;
        let help = "The highest that an adaptive limit can be";
        self.gauges(encoder, "adaptive_limit_max", help, |sum| Some(sum.max))?;
        let help = "Calls in flight under an adaptive limit";
        self.gauges(encoder, "adaptive_in_flight", help, |sum| {
            sum.is_concurrency.then_some(sum.in_flight as f64)
        })?;
        let help =
            "1 while the signal of an adaptive limit is missing, so that it stays where it is";
        self.gauges(encoder, "adaptive_signal_missing", help, |sum| {
            Some(f64::from(u8::from(sum.is_missing)))
        })?;
        let help =
            "What an adaptive limit follows: seconds or a share; absent if nothing was seen yet";
        let mut family =
            encoder.encode_descriptor("adaptive_signal", help, None, MetricType::Gauge)?;
        for (name, sum) in &self.0 {
            let (signal, Some(value)) = sum.signal else { continue };
            let labels = [("limit", name.as_str()), ("signal", signal)];
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn gauges(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&AdaptiveSum) -> Option<f64>,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (limit, sum) in &self.0 {
            let Some(value) = value(sum) else { continue };
            ConstGauge::new(value).encode(family.encode_family(&[("limit", limit.as_str())])?)?;
        }
        Ok(())
    }
}
