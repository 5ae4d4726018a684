//! The metrics of bans, read from the gates.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use spillgate_policy::BanUsage;

/// Of all gates together. Limits of one name in several gates count together.
#[derive(Default)]
pub(super) struct BanSums {
    enforced: u64,
    shadow: u64,
    evicted: u64,
    lost: u64,
    limits: BTreeMap<String, (u64, u64)>,
}

impl FromIterator<BanUsage> for BanSums {
    fn from_iter<T: IntoIterator<Item = BanUsage>>(usages: T) -> Self {
        let mut sums = Self::default();
        for usage in usages {
            sums.enforced += usage.enforced as u64;
            sums.shadow += usage.shadow as u64;
            sums.evicted += usage.evicted;
            sums.lost += usage.lost_strikes;
            for (name, strikes, started) in usage.limits {
                let sum = sums.limits.entry(name).or_default();
                *sum = (sum.0 + strikes, sum.1 + started);
            }
        }
        sums
    }
}

impl BanSums {
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Bans in force";
        let mut family = encoder.encode_descriptor("bans", help, None, MetricType::Gauge)?;
        for (mode, bans) in [("enforce", self.enforced), ("shadow", self.shadow)] {
            ConstGauge::new(bans).encode(family.encode_family(&[("mode", mode)])?)?;
        }
        let help = "Offences that were counted";
        self.encode_limits(encoder, "strikes", help, |(strikes, _)| *strikes)?;
        let help = "Bans that began";
        self.encode_limits(encoder, "bans_started", help, |(_, started)| *started)?;
        for (name, help, count) in [
            ("bans_evicted", "Bans dropped for want of room", self.evicted),
            ("strikes_lost", "Offences not counted, since too many waited", self.lost),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(metric)?;
        }
        Ok(())
    }

    fn encode_limits(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        count: impl Fn(&(u64, u64)) -> u64,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (limit, counts) in &self.limits {
            let label = [("limit", limit.as_str())];
            ConstCounter::new(count(counts)).encode(family.encode_family(&label)?)?;
        }
        Ok(())
    }
}
