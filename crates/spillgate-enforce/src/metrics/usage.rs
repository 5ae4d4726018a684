use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use spillgate_policy::store::{Store, Usage};
use spillgate_policy::{AdaptiveState, BanUsage, Gate};

use super::adaptive::AdaptiveSums;
use super::bans::BanSums;

/// Collects the usage of limits whenever metrics are read.
#[derive(Default)]
pub(super) struct Usages {
    gates: Mutex<Vec<Weak<dyn Limits>>>,
}

/// Any gate, whatever its store.
trait Limits: Send + Sync {
    fn usage(&self) -> Vec<LimitUsage>;

    fn bans(&self) -> BanUsage;

    fn adaptive(&self) -> Vec<AdaptiveState>;
}

struct LimitUsage {
    name: String,
    usage: Usage,
    /// True if permits are held, and not tokens spent.
    is_concurrency: bool,
}

impl<S: Store> Limits for Gate<S> {
    fn usage(&self) -> Vec<LimitUsage> {
        let policy = self.policy();
        let of = |(name, usage): (String, Usage)| LimitUsage {
            is_concurrency: policy.permit_ttl(&name).is_some(),
            name,
            usage,
        };
        Self::usage(self).into_iter().map(of).collect()
    }

    fn bans(&self) -> BanUsage {
        self.ban_usage()
    }

    fn adaptive(&self) -> Vec<AdaptiveState> {
        self.adaptive_states()
    }
}

/// The usage of limits of one name.
#[derive(Default)]
struct Sum {
    callers: u64,
    evictions: u64,
    /// Held and expired permits, if it is on concurrency.
    permits: Option<(u64, u64)>,
}

impl Usages {
    pub(super) fn watch<S: Store>(&self, gate: &Arc<Gate<S>>) {
        let gate: Arc<dyn Limits> = Arc::<Gate<S>>::clone(gate);
        let gate = Arc::downgrade(&gate);
        let mut gates = self.lock();
        gates.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&gate));
        gates.push(gate);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn Limits>>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gates(&self) -> Vec<Arc<dyn Limits>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// The usage by limit. Limits of one name in several gates count together.
    fn sum(&self) -> BTreeMap<String, Sum> {
        let gates = self.gates();
        let mut sums = BTreeMap::<_, Sum>::new();
        for LimitUsage { name, usage, is_concurrency } in gates.iter().flat_map(|it| it.usage()) {
            let sum = sums.entry(name).or_default();
            sum.callers += usage.callers;
            sum.evictions += usage.evictions;
            if is_concurrency {
                let (held, expired) = sum.permits.get_or_insert_default();
                *held += usage.held;
                *expired += usage.expired;
            }
        }
        sums
    }
}

impl Collector for Usages {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sums = self.sum();
        let help = "Callers currently below their full quota";
        let mut family =
            encoder.encode_descriptor("live_callers", help, None, MetricType::Gauge)?;
        for (name, sum) in &sums {
            let callers = ConstGauge::new(sum.callers);
            callers.encode(family.encode_family(&[("limit", name.as_str())])?)?;
        }
        let help = "Active callers evicted for want of capacity";
        let mut family = encoder.encode_descriptor("evictions", help, None, MetricType::Counter)?;
        for (name, sum) in &sums {
            let evictions = ConstCounter::new(sum.evictions);
            evictions.encode(family.encode_family(&[("limit", name.as_str())])?)?;
        }
        encode_permits(&mut encoder, &sums)?;
        let bans: BanSums = self.gates().iter().map(|gate| gate.bans()).collect();
        bans.encode(&mut encoder)?;
        let adaptive: AdaptiveSums = self.gates().iter().flat_map(|gate| gate.adaptive()).collect();
        adaptive.encode(&mut encoder)
    }
}

fn encode_permits(
    encoder: &mut DescriptorEncoder<'_>,
    sums: &BTreeMap<String, Sum>,
) -> fmt::Result {
    let permits = || sums.iter().filter_map(|(name, sum)| Some((name.as_str(), sum.permits?)));
    if permits().next().is_none() {
        return Ok(());
    }
    let help = "Permits of concurrency limits that are held now";
    let mut family = encoder.encode_descriptor("permits_held", help, None, MetricType::Gauge)?;
    for (name, (held, _)) in permits() {
        ConstGauge::new(held).encode(family.encode_family(&[("limit", name)])?)?;
    }
    let help = "Permits that expired before they were released";
    let mut family =
        encoder.encode_descriptor("permits_expired", help, None, MetricType::Counter)?;
    for (name, (_, expired)) in permits() {
        ConstCounter::new(expired).encode(family.encode_family(&[("limit", name)])?)?;
    }
    Ok(())
}

impl fmt::Debug for Usages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usages").finish_non_exhaustive()
    }
}
