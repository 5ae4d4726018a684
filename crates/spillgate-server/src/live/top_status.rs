//! Who is denied most under any limit.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use spillgate_enforce::{LimitCallers, TopCallers};
use spillgate_policy::CountedKey;
use spillgate_policy::store::Store;

use super::Reveal;
use super::status::rounded;
use super::top::ShownCaller;
use crate::App;

#[derive(Serialize, JsonSchema)]
pub(super) struct TopStatus {
    /// The last so many seconds are covered, 600 at most.
    seconds: f64,
    /// The callers that are denied most: 50 under any limit, and 5 under each, 300 in all at most.
    callers: Vec<DeniedCaller>,
    /// The callers with the most allowed calls under any limit, estimated from samples.
    busiest: Vec<BusyCaller>,
}

#[derive(Serialize, JsonSchema)]
struct DeniedCaller {
    /// The limit's name.
    limit: String,
    #[serde(flatten)]
    caller: ShownCaller,
    /// How many calls were denied, at least.
    denied: u64,
    /// How many would have been denied, but for shadow mode, at least.
    shadow_denied: u64,
    /// Counts may be too low by this much, at most.
    error: u64,
    /// How many were allowed, estimated from samples; null if they are few.
    allowed: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct BusyCaller {
    /// The limit's name.
    limit: String,
    #[serde(flatten)]
    caller: ShownCaller,
    /// How many calls were allowed, estimated from samples.
    allowed: u64,
}

/// How many callers of each kind are asked for.
pub(super) const MOST_CALLERS: usize = 50;
/// So that a flood under one limit does not hide who is denied under another.
const OF_EACH_LIMIT: usize = 5;
const MOST_ROWS: usize = 300;

impl TopStatus {
    pub(super) fn of(app: &App, limits: &[LimitCallers], reveal: Reveal) -> Self {
        let policy = app.gate().policy();
        let shown = |limit: &LimitCallers, key: &CountedKey<'_>| {
            (limit.limit.clone(), ShownCaller::of(key, &policy, &limit.limit, reveal))
        };
        let mut callers: Vec<_> = limits.iter().flat_map(denied).collect();
        callers.sort_by_key(|row| std::cmp::Reverse(row.count()));
        let is_listed =
            |(place, row): &(usize, Denied<'_>)| *place < MOST_CALLERS || row.place < OF_EACH_LIMIT;
        let callers = callers.into_iter().enumerate().filter(is_listed).take(MOST_ROWS);
        let callers = callers.map(|(_, row)| {
            let Denied { denied, shadow_denied, allowed, .. } = row;
            let (limit, caller) = shown(row.limit, row.key);
            DeniedCaller { limit, caller, denied, shadow_denied, error: row.error(), allowed }
        });
        let mut busiest = Vec::new();
        for limit in limits {
            let callers = limit.allowed.callers.iter();
            busiest.extend(callers.map(|(key, count)| (*count, limit, key)));
        }
        busiest.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
        let busiest = busiest.into_iter().take(MOST_CALLERS).map(|(allowed, limit, key)| {
            let (limit, caller) = shown(limit, key);
            BusyCaller { limit, caller, allowed }
        });
        let since = limits.iter().map(|limit| limit.since).min();
        let covered = since.map_or(0.0, |since| rounded(app.gate().store().now().since(since)));
        Self { seconds: covered, callers: callers.collect(), busiest: busiest.collect() }
    }
}

/// A caller that a limit denied, or would have but for shadow mode.
struct Denied<'a> {
    limit: &'a LimitCallers,
    key: &'a CountedKey<'static>,
    denied: u64,
    shadow_denied: u64,
    allowed: Option<u64>,
    /// Among the callers of the limit, most denied first.
    place: usize,
}

impl Denied<'_> {
    fn count(&self) -> u64 {
        self.denied + self.shadow_denied
    }

    fn error(&self) -> u64 {
        let LimitCallers { denied, shadow_denied, .. } = self.limit;
        let of = |count: u64, error: u64| if count > 0 { error } else { 0 };
        of(self.denied, denied.error) + of(self.shadow_denied, shadow_denied.error)
    }
}

/// The callers that a limit denied. One that it denied in both modes, since that was changed, is one.
fn denied(limit: &LimitCallers) -> Vec<Denied<'_>> {
    let counts = |top: &'_ TopCallers| -> HashMap<Vec<u8>, u64> {
        top.callers.iter().map(|(key, count)| (key.as_bytes().to_vec(), *count)).collect()
    };
    let (allowed, shadow) = (counts(&limit.allowed), counts(&limit.shadow_denied));
    let enforced = counts(&limit.denied);
    let only_shadow = limit
        .shadow_denied
        .callers
        .iter()
        .filter(|(key, _)| !enforced.contains_key(key.as_bytes()));
    let row = |key: &'_ CountedKey<'static>, denied| {
        let bytes = key.as_bytes();
        let shadow_denied = shadow.get(bytes).copied().unwrap_or(0);
        (denied, shadow_denied, allowed.get(bytes).copied())
    };
    let all = limit.denied.callers.iter().map(|(key, count)| (key, *count));
    let all = all.chain(only_shadow.map(|(key, _)| (key, 0)));
    let mut rows: Vec<_> = all
        .map(|(key, count)| {
            let (denied, shadow_denied, allowed) = row(key, count);
            Denied { limit, key, denied, shadow_denied, allowed, place: 0 }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count()));
    rows.iter_mut().enumerate().for_each(|(place, row)| row.place = place);
    rows
}
