//! Who is denied most, for every protocol.

use schemars::JsonSchema;
use serde::Serialize;
use spillgate_enforce::TopCallers;
use spillgate_policy::store::Store;
use spillgate_policy::{CountedKey, Policy};

use super::status::rounded;
use crate::App;

/// How much is shown of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reveal {
    /// What may be secret is a fingerprint.
    Masked,
    /// Everything, for an operator.
    All,
}

/// Who was denied and allowed in the last minutes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Top")]
pub(crate) struct TopReport {
    /// The last so many seconds are covered, 600 at most.
    seconds: f64,
    /// Limits that somebody met.
    limits: Vec<LimitTop>,
}

#[derive(Serialize, JsonSchema)]
struct LimitTop {
    /// The limit's name.
    limit: String,
    /// Denied calls.
    denied: TopCounts,
    /// Calls that would have been denied, but for shadow mode.
    shadow_denied: TopCounts,
    /// Allowed calls, estimated from samples.
    allowed: TopCounts,
}

/// The callers with the most calls.
#[derive(Serialize, JsonSchema)]
struct TopCounts {
    /// All calls of this kind.
    total: u64,
    /// Counts may be too low by this much, at most.
    error: u64,
    /// The callers, most calls first.
    callers: Vec<TopCaller>,
}

#[derive(Serialize, JsonSchema)]
struct TopCaller {
    #[serde(flatten)]
    caller: ShownCaller,
    /// How many calls it made, at least.
    count: u64,
}

/// A caller, as much as is shown of it.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct ShownCaller {
    /// What the limit counted by. What may be secret is a fingerprint, unless it is revealed.
    pub(super) caller: String,
    /// The values that name it under the limit; absent unless revealed, and if it cannot be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<String>>,
    /// The caller as a ban names it; absent unless revealed, and if the limit counts by something
    /// else.
    #[serde(skip_serializing_if = "Option::is_none")]
    ban: Option<String>,
}

impl TopReport {
    /// The report about one limit, or all.
    pub(crate) fn of(app: &App, limit: Option<&str>, most: usize, reveal: Reveal) -> Self {
        let (policy, now) = (app.gate().policy(), app.gate().store().now());
        let limits = app.enforcer().callers(limit, most);
        let since = limits.iter().map(|limit| limit.since).min();
        let counts = |limit: &str, top: &TopCallers| TopCounts {
            total: top.total,
            error: top.error,
            callers: top
                .callers
                .iter()
                .map(|(key, count)| {
                    let caller = ShownCaller::of(key, &policy, limit, reveal);
                    TopCaller { caller, count: *count }
                })
                .collect(),
        };
        let limits = limits.iter().map(|it| LimitTop {
            denied: counts(&it.limit, &it.denied),
            shadow_denied: counts(&it.limit, &it.shadow_denied),
            allowed: counts(&it.limit, &it.allowed),
            limit: it.limit.clone(),
        });
        let seconds = since.map_or(0.0, |since| rounded(now.since(since)));
        Self { seconds, limits: limits.collect() }
    }

    /// True if nobody met a limit lately.
    pub(crate) fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }
}

impl ShownCaller {
    pub(super) fn of(key: &CountedKey<'_>, policy: &Policy, limit: &str, reveal: Reveal) -> Self {
        match reveal {
            Reveal::Masked => Self { caller: key.to_string(), values: None, ban: None },
            Reveal::All => Self {
                caller: key.in_clear(),
                values: key.values(policy, limit),
                ban: key.caller(policy),
            },
        }
    }
}
