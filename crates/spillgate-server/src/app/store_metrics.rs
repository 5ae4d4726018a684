//! What is counted of the store that servers share.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use spillgate_redis::client::{Health, RoundTrips, Warnings};
use spillgate_redis::{Agreement, LeaseStats, Stats};

use crate::SharedStore;
use spillgate_net::metrics::{counters, gauges};

/// Asks the store for its counts whenever metrics are read.
#[derive(Debug)]
pub(super) struct StoreMetrics(pub(super) Arc<SharedStore>);

impl Collector for StoreMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (health, stats) = (self.0.backend().health(), self.0.stats());
        state(&mut encoder, &health, &stats)?;
        warnings(&mut encoder, &self.0.backend().warnings())?;
        calls(&mut encoder, &health)?;
        round_trips(&mut encoder, &health.round_trips)?;
        decisions(&mut encoder, &stats)?;
        leases(&mut encoder, &stats.leases)?;
        agreement(&mut encoder, &self.0, &stats.agreement)
    }
}

fn state(encoder: &mut DescriptorEncoder<'_>, health: &Health, stats: &Stats) -> fmt::Result {
    let is_up = u64::from(health.outage.is_none());
    gauges(encoder, "store_up", "1 if the shared store can be asked", [([], is_up)])?;
    let help = "How often the shared store went down";
    counters(encoder, "store_outages", help, [([], health.outages)])?;
    let help = "How often a server of the shared store was connected to";
    counters(encoder, "store_connects", help, [([], health.connects)])?;
    let help = "Servers that share the store, as far as this one knows; 0 if it does not";
    gauges(encoder, "store_nodes", help, [([], u64::from(stats.nodes))])
}

fn warnings(encoder: &mut DescriptorEncoder<'_>, warnings: &Warnings) -> fmt::Result {
    let may_evict = u64::from(warnings.may_evict.is_some());
    let help = "1 if a server of the shared store may drop keys, by its maxmemory-policy";
    gauges(encoder, "store_may_evict", help, [([], may_evict)])?;
    let help = "How often the clock of a server of the shared store went back";
    counters(encoder, "store_clock_steps_back", help, [([], warnings.clock_steps_back)])
}

fn calls(encoder: &mut DescriptorEncoder<'_>, health: &Health) -> fmt::Result {
    let help = "Calls to the shared store";
    counters(encoder, "store_calls", help, [([], health.calls)])?;
    let failures = [
        ([("kind", "timed-out")], health.time_outs),
        ([("kind", "failed")], health.failures),
        ([("kind", "rejected")], health.rejected),
        ([("kind", "overloaded")], health.overloaded),
    ];
    let help =
        "Calls to the shared store without an answer; those rejected or overloaded were not sent";
    counters(encoder, "store_call_failures", help, failures)?;
    let help = "Calls that the shared store has yet to answer";
    gauges(encoder, "store_calls_in_flight", help, [([], health.in_flight)])?;
    let help = "Calls that are not sent yet, since more is asked than the shared store answers";
    gauges(encoder, "store_calls_waiting", help, [([], health.waiting)])?;
    let help = "Calls that had to wait before they were sent";
    counters(encoder, "store_calls_waited", help, [([], health.waited)])?;
    let help = "How long calls waited before they were sent, all together";
    let seconds = ConstCounter::new(health.wait.as_secs_f64());
    let name = "store_wait_seconds";
    seconds.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn round_trips(encoder: &mut DescriptorEncoder<'_>, taken: &RoundTrips) -> fmt::Result {
    let bounds = RoundTrips::BOUNDS.iter().map(std::time::Duration::as_secs_f64);
    let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(taken.counts).collect();
    let count = taken.counts.iter().sum();
    let help = "How long answers of the shared store took";
    let name = "store_round_trip_seconds";
    encoder
        .encode_descriptor(name, help, None, MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(taken.sum.as_secs_f64(), count, &buckets, None)
}

fn decisions(encoder: &mut DescriptorEncoder<'_>, stats: &Stats) -> fmt::Result {
    let sources = [
        ([("source", "store")], stats.by_redis),
        ([("source", "remembered-denial")], stats.by_memory),
        ([("source", "lease")], stats.leases.allowed + stats.leases.denied),
        ([("source", "outage-open")], stats.outage_open),
        ([("source", "outage-closed")], stats.outage_closed),
        ([("source", "outage-local")], stats.outage_local),
    ];
    counters(encoder, "store_decisions", "Decisions about limits, by what they go by", sources)?;
    let help = "Callers still to be charged in the store for what was admitted in an outage";
    gauges(encoder, "store_unreported_callers", help, [([], stats.unreported)])?;
    let help = "Tokens admitted in an outage that are not charged, for want of room";
    counters(encoder, "store_forgiven", help, [([], stats.forgiven)])?;
    let help = "Callers whose state was of a time to come, since the store's clock has gone back";
    counters(encoder, "store_states_cut", help, [([], stats.cut)])?;
    let help = "Callers whose quota has changed, and who keep what they have spent";
    counters(encoder, "store_carried_over", help, [([], stats.carried_over)])?;
    let undone =
        [([("outcome", "undone")], stats.undone), ([("outcome", "kept")], stats.kept_charges)];
    let help = "Spends of calls that another limit denied, and what became of them";
    counters(encoder, "store_reversals", help, undone)
}

fn leases(encoder: &mut DescriptorEncoder<'_>, leases: &LeaseStats) -> fmt::Result {
    let help = "Callers of leased limits that this server knows";
    gauges(encoder, "store_leased_callers", help, [([], leases.callers)])?;
    let slices = [
        ([("event", "taken")], leases.takes),
        ([("event", "given-back")], leases.given_back),
        ([("event", "lost")], leases.lost),
    ];
    let help = "Slices of leased limits, by what became of them";
    counters(encoder, "store_slices", help, slices)
}

fn agreement(
    encoder: &mut DescriptorEncoder<'_>,
    store: &SharedStore,
    agreement: &Agreement,
) -> fmt::Result {
    let mismatched = [
        ([("what", "secret")], u64::from(agreement.other_secret)),
        ([("what", "policy")], u64::from(agreement.other_policy)),
    ];
    let help = "Other servers that use the store with another secret or policy";
    gauges(encoder, "store_mismatched_nodes", help, mismatched)?;
    let help = "Other prefixes that servers use the same store with";
    let prefixes = u64::from(agreement.other_prefixes);
    gauges(encoder, "store_other_prefixes", help, [([], prefixes)])?;
    let Some(own) = store.fingerprint() else { return Ok(()) };
    let (secret, policy) = (format!("{:04x}", own.secret), format!("{:04x}", own.policy));
    let prefix = store.backend().prefix();
    let labels = [("prefix", prefix), ("secret", secret.as_str()), ("policy", policy.as_str())];
    let help = "1, by what this server shares limits: servers that do all have the same labels";
    gauges(encoder, "store_info", help, [(labels, 1)])
}
