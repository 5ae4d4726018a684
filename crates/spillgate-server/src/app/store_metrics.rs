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
    gauges(encoder, "store_up", "Whether the shared store is available", [([], is_up)])?;
    let help = "Outages of the shared store";
    counters(encoder, "store_outages", help, [([], health.outages)])?;
    let help = "Connections opened to the shared store";
    counters(encoder, "store_connects", help, [([], health.connects)])?;
    let help = "Servers known to share the store; 0 if unknown";
    gauges(encoder, "store_nodes", help, [([], u64::from(stats.nodes))])
}

fn warnings(encoder: &mut DescriptorEncoder<'_>, warnings: &Warnings) -> fmt::Result {
    let may_evict = u64::from(warnings.may_evict.is_some());
    let help = "Whether the maxmemory-policy of the shared store allows it to evict keys";
    gauges(encoder, "store_may_evict", help, [([], may_evict)])?;
    let help = "Times that the clock of the shared store went backwards";
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
    let help = "Failed calls to the shared store; those rejected or overloaded were not sent";
    counters(encoder, "store_call_failures", help, failures)?;
    let help = "Calls to the shared store in flight";
    gauges(encoder, "store_calls_in_flight", help, [([], health.in_flight)])?;
    let help = "Calls queued because the shared store is saturated";
    gauges(encoder, "store_calls_waiting", help, [([], health.waiting)])?;
    let help = "Calls that were queued before they were sent";
    counters(encoder, "store_calls_waited", help, [([], health.waited)])?;
    let help = "Total time that calls were queued";
    let seconds = ConstCounter::new(health.wait.as_secs_f64());
    let name = "store_wait_seconds";
    seconds.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn round_trips(encoder: &mut DescriptorEncoder<'_>, taken: &RoundTrips) -> fmt::Result {
    let bounds = RoundTrips::BOUNDS.iter().map(std::time::Duration::as_secs_f64);
    let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(taken.counts).collect();
    let count = taken.counts.iter().sum();
    let help = "Round-trip time of calls to the shared store";
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
    counters(encoder, "store_decisions", "Decisions by source", sources)?;
    let help = "Callers whose spending during an outage is not yet reported to the store";
    gauges(encoder, "store_unreported_callers", help, [([], stats.unreported)])?;
    let help = "Tokens admitted during an outage that are never reported, for lack of room";
    counters(encoder, "store_forgiven", help, [([], stats.forgiven)])?;
    let help = "Tokens of settlements that are never given back, for lack of room or of an answer";
    counters(encoder, "store_dropped_refunds", help, [([], stats.dropped_refunds)])?;
    let help = "Callers whose state was in the future because the store's clock went backwards";
    counters(encoder, "store_states_cut", help, [([], stats.cut)])?;
    let help = "Callers whose spending was carried over to a changed quota";
    counters(encoder, "store_carried_over", help, [([], stats.carried_over)])?;
    let undone =
        [([("outcome", "undone")], stats.undone), ([("outcome", "kept")], stats.kept_spends)];
    let help = "Spends reversed because another limit denied the call, by outcome";
    counters(encoder, "store_reversals", help, undone)
}

fn leases(encoder: &mut DescriptorEncoder<'_>, leases: &LeaseStats) -> fmt::Result {
    let help = "Callers of leased limits known to this server";
    gauges(encoder, "store_leased_callers", help, [([], leases.callers)])?;
    let slices = [
        ([("event", "taken")], leases.takes),
        ([("event", "given-back")], leases.given_back),
        ([("event", "lost")], leases.lost),
    ];
    let help = "Lease slices by event";
    counters(encoder, "store_slices", help, slices)?;
    let help = "Tokens of lease slices that were neither spent nor given back";
    counters(encoder, "store_lost_tokens", help, [([], leases.lost_tokens)])
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
    let help = "Servers that share the store with a different secret or policy";
    gauges(encoder, "store_mismatched_nodes", help, mismatched)?;
    let help = "Other key prefixes in use in the shared store";
    let prefixes = u64::from(agreement.other_prefixes);
    gauges(encoder, "store_other_prefixes", help, [([], prefixes)])?;
    let Some(own) = store.fingerprint() else { return Ok(()) };
    let (secret, policy) = (format!("{:04x}", own.secret), format!("{:04x}", own.policy));
    let prefix = store.backend().prefix();
    let labels = [("prefix", prefix), ("secret", secret.as_str()), ("policy", policy.as_str())];
    let help = "Always 1; servers that share limits have the same labels";
    gauges(encoder, "store_info", help, [(labels, 1)])
}
