//! The meters of all limits, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use spillgate::Timestamp;

use super::limit_meter::{LimitCounts, LimitMeter};
use super::recent_callers::LimitCallers;

/// Limits of one name in several gates count together.
#[derive(Default)]
pub(super) struct LimitMeters(Mutex<BTreeMap<String, Arc<LimitMeter>>>);

/// How many callers are kept per limit of the first so many limits: fewer for those that follow, so
/// that a policy with thousands of limits does not need gigabytes. What fits a hash map without growing
/// it. A kept caller takes about 150 bytes, and 250 more if its key is long: 40 to 100 MB for a thousand
/// limits that are all flooded.
const CAPACITIES: [(usize, usize); 2] = [(32, 1792), (1024, 56)];
const LEAST_CAPACITY: usize = 7;

impl LimitMeters {
    pub(super) fn get(&self, limit: &str) -> Arc<LimitMeter> {
        let mut meters = self.lock();
        if let Some(known) = meters.get(limit) {
            return Arc::clone(known);
        }
        let fits = |(limits, _): &&(usize, usize)| meters.len() < *limits;
        let capacity = CAPACITIES.iter().find(fits).map_or(LEAST_CAPACITY, |(_, kept)| *kept);
        let meter = Arc::new(LimitMeter::new(capacity));
        meters.insert(limit.to_owned(), Arc::clone(&meter));
        meter
    }

    pub(super) fn counts(&self) -> Vec<LimitCounts> {
        self.all().iter().map(|(name, meter)| meter.counts(name)).collect()
    }

    pub(super) fn callers(
        &self,
        now: Timestamp,
        limit: Option<&str>,
        most: usize,
    ) -> Vec<LimitCallers> {
        let all = self.all();
        let wanted = all.iter().filter(|(name, _)| limit.is_none_or(|limit| limit == name));
        wanted.filter_map(|(name, meter)| meter.callers(name, now, most)).collect()
    }

    fn all(&self) -> Vec<(String, Arc<LimitMeter>)> {
        self.lock().iter().map(|(name, meter)| (name.clone(), Arc::clone(meter))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<LimitMeter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for LimitMeters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.all();
        encode_requests(&all, &mut encoder)?;
        encode_shed(&all, &mut encoder)?;
        encode_used(&all, &mut encoder)
    }
}

type Meters = [(String, Arc<LimitMeter>)];

fn encode_requests(meters: &Meters, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Requests that met a limit";
    let mut family = encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
    for (name, meter) in meters {
        let LimitCounts { allowed, denied, shadow_denied, .. } = meter.counts(name);
        let outcomes = [("allowed", allowed), ("denied", denied), ("shadow-denied", shadow_denied)];
        for (outcome, count) in outcomes {
            let labels = [("limit", name.as_str()), ("outcome", outcome)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_shed(meters: &Meters, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Requests refused since the service was at an adaptive limit";
    let mut family = encoder.encode_descriptor("shed", help, None, MetricType::Counter)?;
    for (name, meter) in meters {
        for (class, count) in meter.shed_by_class() {
            let labels = [("limit", name.as_str()), ("class", class.name())];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Denied calls are above the last bound: they needed more than there is.
fn encode_used(meters: &Meters, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Share of the quota that is used after a call; allowed calls are sampled";
    let kind = MetricType::Histogram;
    let mut family = encoder.encode_descriptor("quota_used_ratio", help, None, kind)?;
    for (name, meter) in meters {
        let counts = meter.counts(name);
        let tenths = meter.used();
        let over = counts.denied + counts.shadow_denied;
        let bounds = (1..=10).map(|tenth| f64::from(tenth) / 10.0);
        let mut buckets: Vec<_> = bounds.zip(tenths).collect();
        buckets.push((f64::INFINITY, over));
        let total = tenths.iter().sum::<u64>() + over;
        // By the middle of each tenth: what exactly was used is not kept.
        let middles = buckets.iter().map(|(bound, count)| (bound - 0.05).min(1.0) * *count as f64);
        let labels = [("limit", name.as_str())];
        let mut metric = family.encode_family(&labels)?;
        metric.encode_histogram::<NoLabelSet>(middles.sum(), total, &buckets, None)?;
    }
    Ok(())
}

impl fmt::Debug for LimitMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitMeters").finish_non_exhaustive()
    }
}
