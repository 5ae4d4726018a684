//! What people see of a running server: rates, callers, limits and upstreams, now and during the
//! last hour.
//!
//! Decisions pay nothing for it: [`Live`] reads counters once per second.

mod history;
mod quantiles;
mod status;
mod top;
mod top_status;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use spillgate::{Clock, SystemClock, Timestamp};
use spillgate_policy::{LimitSummary, Policy};
use spillgate_proxy::Proxy;
use tokio::time::{MissedTickBehavior, interval};

pub(crate) use self::history::HistoryReport;
use self::history::{Counts, History};
use self::quantiles::RecentLatencies;
pub(crate) use self::status::Status;
pub(crate) use self::top::{Reveal, TopReport};
use crate::App;

/// What is kept of the recent past.
pub(crate) struct Live {
    started: Timestamp,
    proxy: OnceLock<Arc<Proxy>>,
    recent: Mutex<Recent>,
    /// The last answers, masked and revealed: everyone who watches gets the same, once per second.
    answers: [Mutex<Option<(Timestamp, Bytes)>>; 2],
    limits: Mutex<Option<LimitsSeen>>,
}

#[derive(Default)]
struct Recent {
    history: History,
    decisions: RecentLatencies,
    /// By URL.
    upstreams: std::collections::BTreeMap<String, RecentLatencies>,
}

/// The limits, as they were when every caller was last counted.
struct LimitsSeen {
    limits: Arc<Vec<LimitSummary>>,
    /// The policy that they are of.
    policy: Arc<Policy>,
    /// When they may be counted again.
    next: Timestamp,
}

const TICK: Duration = Duration::from_secs(1);

/// Counting all callers of large tables takes this share of a processor's time, unless that would be
/// too seldom.
const SHARE: u32 = 100;
const SELDOM: Duration = Duration::from_secs(10);

impl Live {
    pub(crate) fn new() -> Self {
        Self {
            started: SystemClock.now(),
            proxy: OnceLock::new(),
            recent: Mutex::default(),
            answers: Default::default(),
            limits: Mutex::default(),
        }
    }

    /// Shows the upstreams of a proxy.
    pub(crate) fn show_proxy(&self, proxy: Arc<Proxy>) {
        // There is one per server.
        let _ = self.proxy.set(proxy);
    }

    /// Reads the counters once per second, for ever.
    pub(crate) async fn run(app: Arc<App>) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            app.live().tick(&app, SystemClock.now());
        }
    }

    /// Reads the counters.
    fn tick(&self, app: &App, now: Timestamp) {
        let metrics = app.counted();
        let mut recent = self.recent();
        let (limits, others) = (metrics.limits(), metrics.others());
        recent.history.push(&Counts { limits: &limits, others }, now);
        recent.decisions.push(metrics.decision_seconds().counts());
        let upstreams = self.proxy.get().map(|proxy| proxy.upstreams()).unwrap_or_default();
        recent.upstreams.retain(|url, _| upstreams.iter().any(|it| it.url == *url));
        for upstream in upstreams {
            let latencies = recent.upstreams.entry(upstream.url).or_default();
            latencies.push(upstream.latency.counts());
        }
    }

    pub(crate) fn history(&self, minutes: u64) -> HistoryReport {
        self.recent().history.report(minutes)
    }

    /// What [`Status`] says now, as JSON. Whoever asks again within the second gets the same.
    pub(crate) fn status_text(&self, app: &App, reveal: Reveal) -> Result<Bytes, String> {
        let answer = &self.answers[usize::from(reveal == Reveal::All)];
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemClock.now();
        let is_fresh = |at: Timestamp| now >= at && now.since(at) < TICK / 2;
        if let Some((_, text)) = answer.as_ref().filter(|(at, _)| is_fresh(*at)) {
            return Ok(text.clone());
        }
        let status = Status::of(app, self, reveal, now);
        let text: Bytes = serde_json::to_vec(&status).map_err(|error| error.to_string())?.into();
        *answer = Some((now, text.clone()));
        Ok(text)
    }

    /// The limits in force. Large tables are not counted every second.
    fn limits(&self, app: &App) -> Arc<Vec<LimitSummary>> {
        let mut seen = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemClock.now();
        let policy = app.gate().policy();
        let is_known = |known: &&LimitsSeen| {
            // Not after a step back of the clock.
            let left = known.next.since(now);
            !left.is_zero() && left <= SELDOM && Arc::ptr_eq(&known.policy, &policy)
        };
        if let Some(known) = seen.as_ref().filter(is_known) {
            return Arc::clone(&known.limits);
        }
        let limits = Arc::new(app.gate().limits());
        let took = SystemClock.now().since(now);
        let next = now + (took * SHARE).clamp(TICK / 2, SELDOM);
        *seen = Some(LimitsSeen { limits: Arc::clone(&limits), policy, next });
        limits
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
