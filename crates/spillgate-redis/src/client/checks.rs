//! Checks on servers that answer: eviction policy, and clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use super::address::Address;
use crate::backend::{BackendError, Fault, Result};

/// What is unsafe about a Redis that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warnings {
    /// The server that may evict keys, and its policy.
    pub may_evict: Option<String>,
    /// How often a server's clock stepped back.
    pub clock_steps_back: u64,
}

/// What the checks have found.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// True after all servers passed. From then on an unsafe setting is a warning, not an outage.
    has_started: AtomicBool,
    /// Servers that may evict keys, with the policy.
    evicting: Mutex<BTreeMap<String, String>>,
    steps_back: AtomicU64,
}

impl Checks {
    /// Notes that all servers passed.
    pub(super) fn start(&self) {
        // Relaxed: a late reader refuses once more.
        self.has_started.store(true, Ordering::Relaxed);
    }

    /// Notes the eviction policy of a new connection, and refuses it at startup.
    pub(super) fn note_eviction_on_connect(
        &self,
        address: &Address,
        policy: Option<&str>,
    ) -> Result<()> {
        if let Some(policy) = policy
            && !self.has_started.load(Ordering::Relaxed)
        {
            let text = may_drop(&address.to_string(), policy);
            return Err(BackendError::new(Fault::Misconfigured, text));
        }
        self.note_eviction(address, policy);
        Ok(())
    }

    /// Notes the eviction policy of a server, and logs changes.
    pub(super) fn note_eviction(&self, address: &Address, policy: Option<&str>) {
        let (server, mut evicting) = (address.to_string(), self.evicting());
        match policy {
            Some(policy) => {
                let before = evicting.insert(server.clone(), policy.to_owned());
                if before.as_deref() != Some(policy) {
                    warn!("{}", may_drop(&server, policy));
                }
            }
            None => {
                if evicting.remove(&server).is_some() {
                    info!("{server} no longer evicts counters");
                }
            }
        }
    }

    /// Forgets a server that is no longer used.
    pub(super) fn forget(&self, address: &Address) {
        self.evicting().remove(&address.to_string());
    }

    /// Notes that a server's clock stepped back.
    pub(super) fn note_step_back(&self, address: &Address, by: Duration) {
        self.steps_back.fetch_add(1, Ordering::Relaxed);
        let seconds = by.as_secs_f64();
        warn!(
            server = %address,
            seconds,
            "the Redis clock stepped back: callers that have spent wait longer by as much"
        );
    }

    pub(super) fn warnings(&self) -> Warnings {
        let first =
            self.evicting().first_key_value().map(|(server, policy)| may_drop(server, policy));
        Warnings { may_evict: first, clock_steps_back: self.steps_back.load(Ordering::Relaxed) }
    }

    fn evicting(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.evicting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn may_drop(server: &str, policy: &str) -> String {
    format!(
        "{server} has `maxmemory-policy {policy}`, by which it may evict counters: \
         set it to `noeviction`"
    )
}

/// The time of a server between two moments of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeReading {
    pub(super) sent: Instant,
    pub(super) received: Instant,
    /// Since the epoch.
    pub(super) time: Duration,
}

/// Detects a clock that steps back, relative to this process.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    last: Option<TimeReading>,
}

/// Slewed clocks lose up to one part in so many.
const SLEW: u32 = 1000;

/// Smaller steps are ignored.
const TOLERANCE: Duration = Duration::from_millis(10);

impl ClockWatch {
    /// When the last reading was received.
    pub(super) fn last(&self) -> Option<Instant> {
        self.last.map(|last| last.received)
    }

    /// Adds a reading, and returns by how much the clock has certainly stepped back since the last,
    /// if slewing cannot explain it. The clock is read between request and reply, so that slow
    /// replies are no steps.
    pub(super) fn note(&mut self, sample: TimeReading) -> Option<Duration> {
        let last = self.last.replace(sample)?;
        let elapsed = sample.sent.saturating_duration_since(last.received);
        // The least it can be if it was only slewed.
        let least = last.time + elapsed;
        let back = least.saturating_sub(sample.time);
        (back > TOLERANCE + elapsed / SLEW).then_some(back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Samples that were sent and received so many milliseconds after a moment, with the time of the
    /// clock, and what is found of each.
    fn found<const N: usize>(samples: [(u64, u64, u64); N]) -> [Option<Duration>; N] {
        let (begin, mut watch) = (Instant::now(), ClockWatch::default());
        samples.map(|(sent, received, time)| {
            let [sent, received] = [sent, received].map(|after| begin + millis(after));
            watch.note(TimeReading { sent, received, time: SECOND * 1000 + millis(time) })
        })
    }

    #[test]
    fn a_step_back_is_found_once_and_by_how_much() {
        let steps = found([(0, 1, 0), (1000, 1001, 1000), (2000, 2001, 500), (3000, 3001, 1500)]);
        assert_eq!(steps, [None, None, Some(millis(1499)), None]);
    }

    #[test]
    fn slow_answers_slewing_and_steps_ahead_are_none() {
        let slow = found([(0, 900, 890), (1000, 1900, 1000), (2000, 2001, 2000)]);
        assert_eq!(slow, [None; 3]);
        let slewed = found([(0, 0, 0), (10_000, 10_000, 9_985), (20_000, 20_000, 19_970)]);
        assert_eq!(slewed, [None; 3]);
        assert_eq!(found([(0, 0, 0), (1000, 1000, 9000), (2000, 2000, 10_000)]), [None; 3]);
        // Ahead and back again is a step back.
        let back = found([(0, 0, 0), (1000, 1000, 9000), (2000, 2000, 2000)]);
        assert_eq!(back, [None, None, Some(millis(8000))]);
    }
}
