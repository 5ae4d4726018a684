//! What is counted.

mod adaptive;
mod bans;
mod format;
mod latency;
mod limit_meter;
mod limit_meters;
mod meter;
mod quota_used;
mod recent_callers;
#[cfg(test)]
mod tests;
mod usage;

use std::sync::Arc;

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use spillgate::Timestamp;
use spillgate_policy::Gate;
use spillgate_policy::store::Store;

pub use self::format::MetricsFormat;
pub use self::latency::LatencyHistogram;
pub use self::limit_meter::LimitCounts;
use self::limit_meters::LimitMeters;
pub(crate) use self::meter::{Meter, Timer};
pub use self::recent_callers::{LimitCallers, TopCallers};
use self::usage::Usages;

/// Counts what enforcers decide, for Prometheus.
///
/// ```
/// use spillgate_policy::{Gate, Limit, Policy};
/// use spillgate_enforce::{Enforcer, Metrics};
///
/// let metrics = Metrics::new();
/// let policy = Policy::builder().limit(Limit::new("api", "10/s burst 20")).build()?;
/// let enforcer = Enforcer::new(Gate::new(policy)?).metrics(metrics.clone());
///
/// // What a handler of `/metrics` answers.
/// assert!(metrics.encode().contains("spillgate_live_callers{limit=\"api\"} 0"));
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
///
/// | | |
/// |---|---|
/// | `spillgate_requests_total{limit, outcome}` | requests that met a limit: `allowed` if they went ahead, `denied` or `shadow-denied` if the limit said no |
/// | `spillgate_quota_used_ratio{limit}` | histogram: how close callers come to their quota; calls by the share that is used after them, denied ones above 1. Allowed calls are sampled, 20 per second and limit |
/// | `spillgate_unlimited_total` | requests that met no limit, or whose caller is on the allow list |
/// | `spillgate_blocked_total` | requests whose caller is on the block list |
/// | `spillgate_banned_total` | requests of banned callers, refused |
/// | `spillgate_shadow_banned_total` | requests of callers whose ban is in shadow mode, not refused for it |
/// | `spillgate_without_host_total` | requests refused for want of a clear host, since the policy has limits for hosts |
/// | `spillgate_store_errors_total` | errors of the store |
/// | `spillgate_uncharged_total{limit}` | costs beyond the maximum debt, which were not charged |
/// | `spillgate_missing_peer_total` | requests whose peer's address is not known |
/// | `spillgate_decision_seconds` | duration of decisions, one in 64 sampled |
/// | `spillgate_live_callers{limit}` | callers currently below their full quota |
/// | `spillgate_evictions_total{limit}` | active callers evicted for want of room: raise the limit's capacity |
/// | `spillgate_permits_held{limit}` | permits of concurrency limits that are held now |
/// | `spillgate_permits_expired_total{limit}` | permits that expired before they were released: their holders may still run |
/// | `spillgate_shed_total{limit, class}` | requests refused since the service was at an adaptive limit, by their priority class |
/// | `spillgate_adaptive_changes_total{limit, reason}` | how often an adaptive limit was moved, and why |
/// | `spillgate_adaptive_limit{limit}` | where an adaptive limit is now: permits, calls per second, or a share of all calls |
/// | `spillgate_adaptive_limit_min{limit}`, `spillgate_adaptive_limit_max{limit}` | between what it moves |
/// | `spillgate_adaptive_in_flight{limit}` | calls in flight under an adaptive limit |
/// | `spillgate_adaptive_signal{limit, signal}` | what an adaptive limit follows: seconds or a share; absent if nothing was seen yet |
/// | `spillgate_adaptive_signal_missing{limit}` | 1 while the signal is missing, so that the limit stays where it is |
/// | `spillgate_bans{mode}` | bans in force, by `enforce` and `shadow` |
/// | `spillgate_strikes_total{limit}` | offences that were counted |
/// | `spillgate_bans_started_total{limit}` | bans that offences led to |
/// | `spillgate_bans_evicted_total` | bans dropped for want of room |
/// | `spillgate_strikes_lost_total` | offences not counted, since too many waited for the store |
///
/// Labels are names of limits, and nothing that clients choose. Who was denied is kept apart, for
/// [`callers`](Self::callers): at most 1,792 callers per limit, of the last minutes. `spillgate_live_callers`
/// and the rows below it look at every caller whenever they are read.
///
/// Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    limits: Arc<LimitMeters>,
    unlimited: Counter,
    blocked: Counter,
    banned: Counter,
    shadow_banned: Counter,
    without_host: Counter,
    store_errors: Counter,
    uncharged: Family<LimitLabel, Counter>,
    adaptive_changes: Family<StepLabels, Counter>,
    missing_peer: Counter,
    decision_seconds: Arc<LatencyHistogram>,
    usages: Arc<Usages>,
}

/// How often something happened that has no limit, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherCounts {
    /// Requests that met no limit, or whose caller is on the allow list.
    pub unlimited: u64,
    /// Requests of blocked callers.
    pub blocked: u64,
    /// Requests of banned callers, refused.
    pub banned: u64,
    /// Requests of callers whose ban is in shadow mode.
    pub shadow_banned: u64,
    /// Requests refused for want of a clear host.
    pub without_host: u64,
    /// Errors of the store.
    pub store_errors: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabel {
    limit: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    limit: String,
    reason: &'static str,
}

/// From what a decision in memory takes to what one over a network may take.
static BUCKETS: [f64; 11] = [1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 1e-4, 1e-3, 5e-3, 1e-2];

impl Metrics {
    /// The content type of [`encode`](Self::encode).
    pub const CONTENT_TYPE: &str = MetricsFormat::Text.content_type();

    /// Metrics that have counted nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            limits: Arc::default(),
            unlimited: Counter::default(),
            blocked: Counter::default(),
            banned: Counter::default(),
            shadow_banned: Counter::default(),
            without_host: Counter::default(),
            store_errors: Counter::default(),
            uncharged: Family::default(),
            adaptive_changes: Family::default(),
            missing_peer: Counter::default(),
            decision_seconds: Arc::new(LatencyHistogram::new(&BUCKETS)),
            usages: Arc::default(),
        }
    }

    /// Adds the metrics to a program's own.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("spillgate");
        registry.register_collector(Box::new(Arc::clone(&self.limits)));
        registry.register("unlimited", "Requests that met no limit", self.unlimited.clone());
        registry.register("blocked", "Requests of blocked callers", self.blocked.clone());
        registry.register("banned", "Requests of banned callers", self.banned.clone());
        let help = "Requests of callers whose ban is in shadow mode";
        registry.register("shadow_banned", help, self.shadow_banned.clone());
        let help = "Requests refused for want of a clear host";
        registry.register("without_host", help, self.without_host.clone());
        let help = "Errors of the store";
        registry.register("store_errors", help, self.store_errors.clone());
        let help = "Costs beyond the maximum debt, not charged";
        registry.register("uncharged", help, self.uncharged.clone());
        let help = "How often an adaptive limit was moved, and why";
        registry.register("adaptive_changes", help, self.adaptive_changes.clone());
        let help = "Requests without a known peer address";
        registry.register("missing_peer", help, self.missing_peer.clone());
        let help = "Duration of decisions, one in 64 sampled";
        registry.register("decision_seconds", help, Shared(Arc::clone(&self.decision_seconds)));
        registry.register_collector(Box::new(Arc::clone(&self.usages)));
    }

    /// Writes the metrics in the text format of Prometheus.
    #[must_use]
    pub fn encode(&self) -> String {
        self.encode_as(MetricsFormat::Text)
    }

    /// Writes the metrics in a format, such as the one that a client [accepts](MetricsFormat::accepted).
    #[must_use]
    pub fn encode_as(&self, format: MetricsFormat) -> String {
        let mut registry = Registry::default();
        self.register(&mut registry);
        format.encode(&registry)
    }

    /// How often requests met each limit, by name.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitCounts> {
        self.limits.counts()
    }

    /// How often something happened that has no limit.
    #[must_use]
    pub fn others(&self) -> OtherCounts {
        OtherCounts {
            unlimited: self.unlimited.get(),
            blocked: self.blocked.get(),
            banned: self.banned.get(),
            shadow_banned: self.shadow_banned.get(),
            without_host: self.without_host.get(),
            store_errors: self.store_errors.get(),
        }
    }

    /// Who met a limit, or each limit, in the last 5 to 10 minutes, at most so many callers of each
    /// kind. `now` is the time of the [store](spillgate_policy::store::Store::now).
    ///
    /// ```
    /// use spillgate::{Clock, SystemClock};
    /// use spillgate_enforce::{Enforcer, Metrics};
    /// use spillgate_policy::{Gate, Limit, LimitCheck, Policy};
    ///
    /// let policy = Policy::builder().limit(Limit::new("api", "1/h")).build()?;
    /// let metrics = Metrics::new();
    /// let enforcer = Enforcer::new(Gate::new(policy)?).metrics(metrics.clone());
    /// for _ in 0..3 {
    ///     enforcer.try_decide(&LimitCheck::new("api", &["203.0.113.7"], 1), |_| ());
    /// }
    /// let callers = metrics.callers(SystemClock.now(), None, 10);
    /// let (caller, denied) = &callers[0].denied.callers[0];
    /// assert_eq!((caller.to_string().as_str(), *denied), ("caller=203.0.113.7", 2));
    /// # Ok::<(), spillgate_policy::Error>(())
    /// ```
    #[must_use]
    pub fn callers(&self, now: Timestamp, limit: Option<&str>, most: usize) -> Vec<LimitCallers> {
        self.limits.callers(now, limit, most)
    }

    /// How long decisions take, one in 64 sampled.
    #[must_use]
    pub fn decision_seconds(&self) -> &LatencyHistogram {
        &self.decision_seconds
    }

    /// Adds the usage of a gate's limits, for as long as the gate exists.
    pub(crate) fn watch<S: Store>(&self, gate: &Arc<Gate<S>>) {
        self.usages.watch(gate);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// A metric that is registered and written elsewhere.
#[derive(Debug)]
struct Shared(Arc<LatencyHistogram>);

impl EncodeMetric for Shared {
    fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.0.metric_type()
    }
}
