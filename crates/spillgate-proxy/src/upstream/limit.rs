//! The adaptive limit of an upstream: how much it may have in flight, by what it can take.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use spillgate::adaptive::{
    AdaptiveLimit, AdaptiveLimitBuilder, AdaptivePermit, AdaptiveStatus, Aimd, Auto, Ending,
    Errors, Priority, Target,
};
use spillgate::{Clock, SystemClock};
use tracing::{debug, info};

use super::{Answered, Unanswered};
use crate::settings::{LimitSettings, UpstreamController, UpstreamUrl};

/// The limit while the settings ask for one. Upstreams of the same URL in other settings share it.
#[derive(Debug, Default)]
pub(super) struct UpstreamLimit {
    live: ArcSwapOption<Live>,
    /// The last one, while the settings ask for none: its requests may go on.
    resting: Mutex<Option<AdaptiveLimit>>,
    logged: Mutex<Logged>,
}

#[derive(Debug)]
struct Live {
    settings: LimitSettings,
    limit: AdaptiveLimit,
}

/// What the log knows.
#[derive(Debug, Default)]
struct Logged {
    limit: Option<f64>,
    is_falling: Option<bool>,
}

impl UpstreamLimit {
    /// Puts settings in force. What was learnt of the upstream is kept, and so is what it has in
    /// flight, as long as the same is limited.
    pub(super) fn adopt(&self, settings: Option<&LimitSettings>) {
        let Some(settings) = settings else {
            if let Some(last) = self.live.swap(None) {
                *self.resting() = Some(last.limit.clone());
            }
            return;
        };
        let current = self.live.load_full();
        if current.as_ref().is_some_and(|current| current.settings == *settings) {
            return;
        }
        let rested = self.resting().take();
        let kept = current.map(|current| current.limit.clone()).or(rested);
        let kept = kept.filter(|limit| limit.reconfigure(builder(settings)));
        let limit = kept.unwrap_or_else(|| builder(settings).build());
        self.live.store(Some(Arc::new(Live { settings: settings.clone(), limit })));
    }

    fn resting(&self) -> MutexGuard<'_, Option<AdaptiveLimit>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for one request; `Err` if the upstream has as much as it can take.
    pub(super) fn try_acquire(&self) -> Result<Option<AdaptivePermit>, AtLimit> {
        match &*self.live.load() {
            None => Ok(None),
            Some(live) => match live.limit.try_acquire(Priority::default()) {
                Ok(permit) => Ok(Some(permit)),
                Err(_) => Err(AtLimit),
            },
        }
    }

    pub(super) fn status(&self) -> Option<AdaptiveStatus> {
        self.live.load().as_ref().map(|live| live.limit.status())
    }

    /// Logs a limit that has moved since the last call: at `info` if it has turned, else at `debug`.
    pub(super) fn log(&self, url: &UpstreamUrl) {
        let Some(status) = self.status() else { return };
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = logged.limit.replace(status.limit) else { return };
        if last == status.limit {
            return;
        }
        let is_falling = Some(status.limit < last);
        let has_turned = std::mem::replace(&mut logged.is_falling, is_falling) != is_falling;
        let (from, to, reason) = (rounded(last), rounded(status.limit), status.reason.name());
        let signal = status.signal;
        match has_turned {
            true => info!(upstream = %url, from, to, reason, signal, "upstream limit moved"),
            false => debug!(upstream = %url, from, to, reason, signal, "upstream limit moved"),
        }
    }
}

/// Enough digits for a share.
fn rounded(limit: f64) -> f64 {
    (limit * 100.0).round() / 100.0
}

/// As much is in flight as the upstream can take.
#[derive(Debug)]
pub(super) struct AtLimit;

fn builder(settings: &LimitSettings) -> AdaptiveLimitBuilder {
    let range = settings.range.clone();
    match settings.controller {
        UpstreamController::Auto => AdaptiveLimit::concurrency(Auto::default(), range),
        UpstreamController::Target(latency) => {
            AdaptiveLimit::concurrency(Target::new(latency), range)
        }
        UpstreamController::Aimd => AdaptiveLimit::concurrency(Aimd::default(), range),
        UpstreamController::Errors => AdaptiveLimit::share(Errors::default(), LEAST_SHARE),
    }
}

/// So much of its requests a failing upstream gets in any case: otherwise nobody would notice that it
/// has recovered.
const LEAST_SHARE: f64 = 0.2;

/// Records how an attempt ended. What the client did says nothing about the upstream.
pub(super) fn record(permit: &mut AdaptivePermit, answered: &Result<Answered, Unanswered>) {
    match answered {
        Ok(answered) if answered.response.status().is_server_error() => {
            permit.record(Ending::Failed);
        }
        Ok(Answered { request: None, .. }) => permit.record(Ending::Ok),
        Ok(Answered { request: Some(body), .. }) => {
            let now = SystemClock.now();
            if let Some(latency) = body.latency(now) {
                permit.record_latency_at(Ending::Ok, latency, now);
            }
        }
        Err(unanswered) if unanswered.why.is_of_client() => {}
        Err(_) => permit.record(Ending::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_flight_count_again_when_a_limit_comes_back() {
        let settings = LimitSettings { controller: UpstreamController::Auto, range: 2..=2 };
        let limit = UpstreamLimit::default();
        limit.adopt(Some(&settings));
        let begun = [(); 2].map(|()| limit.try_acquire().unwrap().unwrap());
        assert!(limit.try_acquire().is_err());
        limit.adopt(None);
        assert!(limit.try_acquire().unwrap().is_none(), "there is no limit");
        limit.adopt(Some(&settings));
        assert!(limit.try_acquire().is_err(), "two are still in flight");
        drop(begun);
        assert!(limit.try_acquire().unwrap().is_some());
    }
}
