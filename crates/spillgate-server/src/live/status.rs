//! How a server is doing now.

use std::collections::HashMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use spillgate::Timestamp;
use spillgate_enforce::{LimitCallers, LimitCounts, OtherCounts};
use spillgate_policy::LimitSummary;

use super::quantiles::Quantiles;
use super::top_status::{MOST_CALLERS, TopStatus};
use super::{Live, Recent, Reveal};
use crate::{App, Phase};

/// How the server is doing now.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    /// Now, in seconds since 1970.
    time: f64,
    /// The version of the server.
    version: &'static str,
    /// Seconds since the server started.
    uptime: f64,
    /// `starting`, `ready` or `draining`.
    phase: &'static str,
    /// Why the last reload of the policy was refused, or null. Only the number of problems unless
    /// callers are revealed.
    reload_failure: Option<String>,
    /// Requests during the last second.
    second: SecondCounts,
    /// Requests since the start, also under limits that are gone.
    total: TotalCounts,
    /// How long decisions took during the last minute, one in 64 sampled; null if there were none.
    decision: Option<Quantiles>,
    /// Limits of the policy, in its order; the busiest 200 if there are more.
    limits: Vec<LimitStatus>,
    /// How many limits were left out.
    more_limits: usize,
    /// Who is denied most.
    top: TopStatus,
    /// Bans in force.
    bans: BanStatus,
    /// The shared store; null if counters are in memory.
    store: Option<StoreStatus>,
    /// Upstreams of the reverse proxy.
    upstreams: Vec<UpstreamReport>,
}

#[derive(Clone, Copy, Default, Serialize, JsonSchema)]
struct SecondCounts {
    #[serde(flatten)]
    limits: LimitSecond,
    unlimited: u32,
    blocked: u32,
    banned: u32,
}

/// Requests that met a limit during the last second.
#[derive(Clone, Copy, Default, Serialize, JsonSchema)]
struct LimitSecond {
    allowed: u32,
    denied: u32,
    shadow_denied: u32,
    shed: u32,
}

#[derive(Serialize, JsonSchema)]
struct TotalCounts {
    allowed: u64,
    denied: u64,
    shadow_denied: u64,
    shed: u64,
    unlimited: u64,
    blocked: u64,
    banned: u64,
    shadow_banned: u64,
    without_host: u64,
    store_errors: u64,
}

#[derive(Serialize, JsonSchema)]
struct LimitStatus {
    #[serde(flatten)]
    summary: LimitSummary,
    /// Requests that went ahead, since the start.
    allowed: u64,
    /// Requests that it denied, since the start.
    denied: u64,
    /// Requests that it would have denied, but for shadow mode, since the start.
    shadow_denied: u64,
    /// Requests that it shed, since the start.
    shed: u64,
    second: LimitSecond,
    /// Calls of the last 5 to 10 minutes by the share of the quota that was used after them: up to
    /// 10 %, up to 20 %, … up to 100 %, and those that were denied.
    used: Vec<u64>,
}

#[derive(Serialize, JsonSchema)]
struct BanStatus {
    /// Bans that refuse.
    enforced: usize,
    /// Bans in shadow mode.
    shadow: usize,
    /// Bans dropped for want of room, since the start.
    evicted: u64,
}

#[derive(Serialize, JsonSchema)]
struct StoreStatus {
    /// What it is.
    kind: &'static str,
    /// `up` or `down`.
    state: &'static str,
    /// Why it is unavailable, or null.
    outage: Option<String>,
    /// What is unsafe about it, or null.
    warning: Option<String>,
    /// How servers that share it differ, or null.
    mismatch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct UpstreamReport {
    url: String,
    /// Whether it passes its health checks and is reachable.
    healthy: bool,
    /// Requests in flight to it.
    in_flight: usize,
    /// Half of the responses of the last minute took no longer, in seconds; null if there were none.
    p50: Option<f64>,
    /// The same for 99 of 100.
    p99: Option<f64>,
    /// Where its adaptive limit is; null if it has none.
    limit: Option<f64>,
    /// Why that was moved or held last.
    reason: Option<&'static str>,
}

const MOST_LIMITS: usize = 200;
impl Status {
    pub(super) fn of(app: &App, live: &Live, reveal: Reveal, now: Timestamp) -> Self {
        let summaries = live.limits(app);
        let callers = app.enforcer().callers(None, MOST_CALLERS);
        let counts: HashMap<_, _> =
            app.counted().limits().into_iter().map(|it| (it.limit.clone(), it)).collect();
        let recent = live.recent();
        let limits = limits(&summaries, &counts, &callers, &recent);
        let more_limits = summaries.len() - limits.len();
        let readiness = app.readiness();
        let reload_failure = readiness.reload_failure().map(|why| match reveal {
            Reveal::All => why,
            Reveal::Masked => format!("{} problems", why.lines().count()),
        });
        Self {
            time: rounded(Duration::from_nanos(now.as_nanos())),
            version: env!("CARGO_PKG_VERSION"),
            uptime: rounded(now.since(live.started)),
            phase: readiness.phase().name(),
            reload_failure,
            second: second(&recent, &counts),
            total: total(&counts, app.counted().others()),
            decision: recent.decisions.quantiles(app.counted().decision_seconds()),
            limits,
            more_limits,
            top: TopStatus::of(app, &callers, reveal),
            bans: bans(app),
            store: store(app, reveal),
            upstreams: upstreams(live, &recent),
        }
    }
}

/// In seconds. Milliseconds are all that anyone reads.
pub(super) fn rounded(time: Duration) -> f64 {
    time.as_millis() as f64 / 1e3
}

fn second(recent: &Recent, counts: &HashMap<String, LimitCounts>) -> SecondCounts {
    let mut limits = LimitSecond::default();
    for name in counts.keys() {
        let one = limit_second(recent, name);
        limits.allowed = limits.allowed.saturating_add(one.allowed);
        limits.denied = limits.denied.saturating_add(one.denied);
        limits.shadow_denied = limits.shadow_denied.saturating_add(one.shadow_denied);
        limits.shed = limits.shed.saturating_add(one.shed);
    }
    let [unlimited, blocked, banned] = recent.history.last_others();
    SecondCounts { limits, unlimited, blocked, banned }
}

fn limit_second(recent: &Recent, limit: &str) -> LimitSecond {
    let [allowed, denied, shadow_denied, shed] = recent.history.last(limit);
    LimitSecond { allowed, denied, shadow_denied, shed }
}

fn total(limits: &HashMap<String, LimitCounts>, others: OtherCounts) -> TotalCounts {
    let sum = |count: fn(&LimitCounts) -> u64| limits.values().map(count).sum();
    TotalCounts {
        allowed: sum(|limit| limit.allowed),
        denied: sum(|limit| limit.denied),
        shadow_denied: sum(|limit| limit.shadow_denied),
        shed: sum(|limit| limit.shed),
        unlimited: others.unlimited,
        blocked: others.blocked,
        banned: others.banned,
        shadow_banned: others.shadow_banned,
        without_host: others.without_host,
        store_errors: others.store_errors,
    }
}

fn limits(
    summaries: &[LimitSummary],
    counts: &HashMap<String, LimitCounts>,
    callers: &[LimitCallers],
    recent: &Recent,
) -> Vec<LimitStatus> {
    let calls = |summary: &LimitSummary| {
        counts.get(&summary.name).map_or(0, |it| it.allowed + it.denied + it.shadow_denied)
    };
    let mut busiest: Vec<_> = (0..summaries.len()).collect();
    if busiest.len() > MOST_LIMITS {
        busiest.sort_by_key(|place| std::cmp::Reverse(calls(&summaries[*place])));
        busiest.truncate(MOST_LIMITS);
        busiest.sort_unstable();
    }
    let status = |place: usize| {
        let summary = summaries[place].clone();
        let counts = counts.get(&summary.name).cloned();
        let counts = counts.unwrap_or_else(|| LimitCounts::new(summary.name.as_str()));
        let callers = callers.iter().find(|callers| callers.limit == summary.name);
        LimitStatus {
            second: limit_second(recent, &summary.name),
            used: callers.map_or_else(|| vec![0; 11], used),
            summary,
            allowed: counts.allowed,
            denied: counts.denied,
            shadow_denied: counts.shadow_denied,
            shed: counts.shed,
        }
    };
    busiest.into_iter().map(status).collect()
}

fn used(callers: &LimitCallers) -> Vec<u64> {
    let over = callers.denied.total + callers.shadow_denied.total;
    callers.used.iter().copied().chain([over]).collect()
}

fn bans(app: &App) -> BanStatus {
    let usage = app.gate().ban_usage();
    BanStatus { enforced: usage.enforced, shadow: usage.shadow, evicted: usage.evicted }
}

fn store(app: &App, reveal: Reveal) -> Option<StoreStatus> {
    let shared = app.gate().store().shared()?;
    let shown = |why: String, outline: &str| match reveal {
        Reveal::All => why,
        Reveal::Masked => outline.to_owned(),
    };
    let outage = shared.backend().health().outage;
    let state = if outage.is_none() { "up" } else { "down" };
    let outage = outage.map(|why| shown(why.to_string(), "unavailable"));
    let warning = shared.backend().warnings().may_evict;
    let warning = warning.map(|why| shown(why, "it may evict keys"));
    let mismatch = shared.stats().agreement.differences();
    let mismatch = mismatch.map(|why| shown(why, "servers that share it differ"));
    Some(StoreStatus { kind: "redis", state, outage, warning, mismatch })
}

fn upstreams(live: &Live, recent: &Recent) -> Vec<UpstreamReport> {
    let upstreams = live.proxy.get().map(|proxy| proxy.upstreams()).unwrap_or_default();
    let report = |upstream: spillgate_proxy::UpstreamStatus| {
        let latencies = recent.upstreams.get(&upstream.url);
        let quantiles = latencies.and_then(|recent| recent.quantiles(&upstream.latency));
        UpstreamReport {
            url: upstream.url,
            healthy: upstream.is_healthy,
            in_flight: upstream.in_flight,
            p50: quantiles.map(|it| it.p50),
            p99: quantiles.map(|it| it.p99),
            limit: upstream.limit.as_ref().map(|status| status.limit),
            reason: upstream.limit.as_ref().map(|status| status.reason.name()),
        }
    };
    upstreams.into_iter().map(report).collect()
}

impl Phase {
    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}
