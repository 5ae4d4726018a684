use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use spillgate_policy::Gate;
use spillgate_policy::store::{Store, Usage};

/// Collects the usage of limits whenever metrics are read.
#[derive(Default)]
pub(super) struct Usages {
    gates: Mutex<Vec<Weak<dyn Limits>>>,
}

/// Any gate, whatever its store.
trait Limits: Send + Sync {
    fn usage(&self) -> Vec<(String, Usage)>;
}

impl<S: Store> Limits for Gate<S> {
    fn usage(&self) -> Vec<(String, Usage)> {
        Self::usage(self)
    }
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

    /// Callers and evictions by limit. Limits of one name in several gates count together.
    fn sum(&self) -> BTreeMap<String, (u64, u64)> {
        let gates: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        let mut sums = BTreeMap::new();
        for (name, usage) in gates.iter().flat_map(|gate| gate.usage()) {
            let (callers, evictions) = sums.entry(name).or_default();
            *callers += usage.callers;
            *evictions += usage.evictions;
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
        for (name, (callers, _)) in &sums {
            let callers = ConstGauge::new(*callers);
            callers.encode(family.encode_family(&[("limit", name.as_str())])?)?;
        }
        let help = "Active callers evicted for want of capacity";
        let mut family = encoder.encode_descriptor("evictions", help, None, MetricType::Counter)?;
        for (name, (_, evictions)) in &sums {
            let evictions = ConstCounter::new(*evictions);
            evictions.encode(family.encode_family(&[("limit", name.as_str())])?)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Usages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usages").finish_non_exhaustive()
    }
}
