//! What a server says about itself: `/v1/status`.
//!
//! Members that a server leaves out have their default, so that an older or newer one can be shown.

use serde::Deserialize;

use super::super::escape::Untrusted;

/// A server at some time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    /// Seconds since 1970.
    pub(super) time: f64,
    pub(super) version: Untrusted,
    /// Seconds.
    pub(super) uptime: f64,
    pub(super) phase: Untrusted,
    pub(super) reload_failure: Option<Untrusted>,
    /// During the last second.
    pub(super) second: Second,
    pub(super) decision: Option<Latency>,
    pub(super) limits: Vec<Limit>,
    /// How many limits were left out.
    pub(super) more_limits: u64,
    pub(super) top: Top,
    pub(super) bans: BanCounts,
    pub(super) store: Option<Store>,
    pub(super) upstreams: Vec<Upstream>,
}

/// Requests of one second, by what became of them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Second {
    pub(super) allowed: u64,
    pub(super) denied: u64,
    pub(super) shadow_denied: u64,
    pub(super) shed: u64,
    pub(super) unlimited: u64,
    pub(super) blocked: u64,
    pub(super) banned: u64,
}

/// Seconds per decision.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Latency {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Limit {
    pub(super) name: Untrusted,
    pub(super) quota: Untrusted,
    pub(super) algorithm: Untrusted,
    pub(super) per: Untrusted,
    pub(super) mode: Untrusted,
    /// These four since the start of the server.
    pub(super) allowed: u64,
    pub(super) denied: u64,
    pub(super) shadow_denied: u64,
    pub(super) shed: u64,
    pub(super) second: Second,
    /// None if only Redis knows.
    pub(super) callers: Option<u64>,
    pub(super) capacity: Option<u64>,
    pub(super) evictions: Option<u64>,
    /// Permits, of a concurrency limit.
    pub(super) held: Option<u64>,
    pub(super) expired: Option<u64>,
    /// Requests by the share of the quota that was used after them: up to 10 %, 20 %, … 100 %,
    /// and those that were denied.
    pub(super) used: Vec<u64>,
    pub(super) adaptive: Option<Adaptive>,
}

/// A limit that follows load.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Adaptive {
    pub(super) kind: Untrusted,
    pub(super) controller: Untrusted,
    pub(super) signal: Untrusted,
    #[serde(alias = "signal-value")]
    pub(super) signal_value: Option<f64>,
    pub(super) limit: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) reason: Untrusted,
}

/// The callers who were denied most.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Top {
    /// How many last seconds the counts are of.
    pub(super) seconds: f64,
    pub(super) callers: Vec<Caller>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Caller {
    pub(super) limit: Untrusted,
    /// Secrets are fingerprints, unless names are revealed.
    pub(super) caller: Untrusted,
    pub(super) denied: u64,
    pub(super) shadow_denied: u64,
    /// By how much the true count may be higher.
    pub(super) error: u64,
    /// Estimated.
    pub(super) allowed: Option<u64>,
    /// The key, if names are revealed and it can be written as text. That of a limit for all
    /// callers together has no parts.
    pub(super) values: Option<Vec<Untrusted>>,
    /// What a ban of it names, if names are revealed and it can be banned.
    pub(super) ban: Option<Untrusted>,
}

/// `/v1/top`: the callers of each limit.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LimitTops {
    seconds: f64,
    limits: Vec<LimitTop>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LimitTop {
    limit: Untrusted,
    denied: CallerCounts,
    shadow_denied: CallerCounts,
    allowed: CallerCounts,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CallerCounts {
    error: u64,
    callers: Vec<CallerCount>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CallerCount {
    caller: Untrusted,
    count: u64,
}

impl CallerCounts {
    fn of(&self, caller: &Untrusted) -> Option<u64> {
        self.callers.iter().find(|row| row.caller == *caller).map(|row| row.count)
    }
}

impl From<LimitTops> for Top {
    fn from(top: LimitTops) -> Self {
        let mut callers = Vec::new();
        for LimitTop { limit, denied, shadow_denied, allowed } in &top.limits {
            let is_new = |row: &&CallerCount| denied.of(&row.caller).is_none();
            let rows = denied.callers.iter().chain(shadow_denied.callers.iter().filter(is_new));
            callers.extend(rows.map(|CallerCount { caller, .. }| Caller {
                limit: limit.clone(),
                caller: caller.clone(),
                denied: denied.of(caller).unwrap_or(0),
                shadow_denied: shadow_denied.of(caller).unwrap_or(0),
                error: denied.error.max(shadow_denied.error),
                allowed: allowed.of(caller),
                ..Caller::default()
            }));
        }
        callers.sort_by_key(|caller| std::cmp::Reverse(caller.denied + caller.shadow_denied));
        Self { seconds: top.seconds, callers }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BanCounts {
    pub(super) enforced: u64,
    pub(super) shadow: u64,
    pub(super) evicted: u64,
}

/// What servers share limits through.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Store {
    pub(super) kind: Untrusted,
    pub(super) state: Untrusted,
    pub(super) outage: Option<Untrusted>,
    pub(super) warning: Option<Untrusted>,
    pub(super) mismatch: Option<Untrusted>,
}

/// A service behind the proxy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Upstream {
    pub(super) url: Untrusted,
    pub(super) healthy: bool,
    pub(super) in_flight: u64,
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) limit: Option<f64>,
    pub(super) reason: Option<Untrusted>,
}

/// A ban, from `/v1/bans`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ban {
    pub(super) caller: Untrusted,
    pub(super) reason: Untrusted,
    pub(super) count: u64,
    pub(super) mode: Untrusted,
    pub(super) expires: Untrusted,
    /// Seconds.
    pub(super) expires_in: f64,
}

/// `/v1/bans`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Bans {
    pub(super) bans: Vec<Ban>,
}

/// `/v1/history`: what happened before anybody watched.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Past {
    /// Seconds per point.
    pub(super) step: u64,
    /// The end of the last point, in seconds since 1970.
    pub(super) end: i64,
    pub(super) limits: Vec<PastLimit>,
}

/// Requests per point, the oldest first; None if the server was not there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PastLimit {
    pub(super) allowed: Vec<Option<u64>>,
    pub(super) denied: Vec<Option<u64>>,
    pub(super) shadow_denied: Vec<Option<u64>>,
    pub(super) shed: Vec<Option<u64>>,
}
