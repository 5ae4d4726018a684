//! What is counted.

mod adaptive;
mod bans;
mod format;
mod meter;
mod usage;

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use spillgate_policy::Gate;
use spillgate_policy::store::Store;

pub use self::format::MetricsFormat;
pub(crate) use self::meter::{Meter, Timer};
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
/// Labels are names of limits, and nothing that clients choose. `spillgate_live_callers`
/// and the rows below it look at every caller whenever they are read.
///
/// Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<Labels, Counter>,
    unlimited: Counter,
    blocked: Counter,
    banned: Counter,
    shadow_banned: Counter,
    without_host: Counter,
    store_errors: Counter,
    uncharged: Family<LimitLabel, Counter>,
    shed: Family<ShedLabels, Counter>,
    adaptive_changes: Family<StepLabels, Counter>,
    missing_peer: Counter,
    decision_seconds: Histogram,
    usages: Arc<Usages>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    limit: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabel {
    limit: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ShedLabels {
    limit: String,
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    limit: String,
    reason: &'static str,
}

/// From what a decision in memory takes to what one over a network may take.
const BUCKETS: [f64; 11] = [1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 1e-4, 1e-3, 5e-3, 1e-2];

impl Metrics {
    /// The content type of [`encode`](Self::encode).
    pub const CONTENT_TYPE: &str = MetricsFormat::Text.content_type();

    /// Metrics that have counted nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            requests: Family::default(),
            unlimited: Counter::default(),
            blocked: Counter::default(),
            banned: Counter::default(),
            shadow_banned: Counter::default(),
            without_host: Counter::default(),
            store_errors: Counter::default(),
            uncharged: Family::default(),
            shed: Family::default(),
            adaptive_changes: Family::default(),
            missing_peer: Counter::default(),
            decision_seconds: Histogram::new(BUCKETS),
            usages: Arc::default(),
        }
    }

    /// Adds the metrics to a program's own.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("spillgate");
        registry.register("requests", "Requests that met a limit", self.requests.clone());
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
        let help = "Requests refused since the service was at an adaptive limit";
        registry.register("shed", help, self.shed.clone());
        let help = "How often an adaptive limit was moved, and why";
        registry.register("adaptive_changes", help, self.adaptive_changes.clone());
        let help = "Requests without a known peer address";
        registry.register("missing_peer", help, self.missing_peer.clone());
        let help = "Duration of decisions, one in 64 sampled";
        registry.register("decision_seconds", help, self.decision_seconds.clone());
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
