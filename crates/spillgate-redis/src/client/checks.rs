//! What is watched on servers that answer: whether they may drop keys, and their clocks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use super::address::Address;
use crate::backend::{BackendError, Fault};

/// What is unsafe about Redis that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warnings {
    /// Which server may drop what callers have spent, and by which policy.
    pub may_evict: Option<String>,
    /// How often a server's clock was found to have gone back.
    pub clock_steps_back: u64,
}

/// What the checks have found so far.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// True once all servers were found fit. From then on nothing that is only unsafe is an outage.
    has_started: AtomicBool,
    /// Servers that may drop keys, with the policy.
    evicting: Mutex<BTreeMap<String, String>>,
    steps_back: AtomicU64,
}

impl Checks {
    /// Notes that all servers were found fit.
    pub(super) fn start(&self) {
        // Relaxed: whoever sees it late refuses once more.
        self.has_started.store(true, Ordering::Relaxed);
    }

    /// Notes by which policy a server may drop keys when it is connected to, and refuses it for
    /// that at the start.
    pub(super) fn note_eviction_on_connect(
        &self,
        address: &Address,
        policy: Option<&str>,
    ) -> Result<(), BackendError> {
        if let Some(policy) = policy
            && !self.has_started.load(Ordering::Relaxed)
        {
            let text = may_drop(&address.to_string(), policy);
            return Err(BackendError::new(Fault::Misconfigured, text));
        }
        self.note_eviction(address, policy);
        Ok(())
    }

    /// Notes by which policy a server may drop keys, and logs what has changed.
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
                    info!("{server} no longer drops what callers have spent");
                }
            }
        }
    }

    /// Forgets a server that is not used any more.
    pub(super) fn forget(&self, address: &Address) {
        self.evicting().remove(&address.to_string());
    }

    /// Notes that a server's clock has gone back.
    pub(super) fn note_step_back(&self, address: &Address, by: Duration) {
        self.steps_back.fetch_add(1, Ordering::Relaxed);
        let seconds = by.as_secs_f64();
        warn!(
            server = %address,
            seconds,
            "Redis's clock has gone back: callers with something spent wait longer by as much"
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
        "{server} has `maxmemory-policy {policy}`, by which it may drop what callers have spent: \
         set it to `noeviction`"
    )
}

/// What time a server had between two moments of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeReading {
    pub(super) sent: Instant,
    pub(super) received: Instant,
    /// Since 1970.
    pub(super) time: Duration,
}

/// Notices when a clock goes back, by how far it is ahead of this process.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    /// A sample by which it was ahead by at least so much.
    last: Option<TimeReading>,
}

/// Clocks that are slewed lose as much as one part in so many.
const SLEW: u32 = 1000;

/// What is no step.
const TOLERANCE: Duration = Duration::from_millis(10);

impl ClockWatch {
    /// Takes a sample in, and tells by how much the clock has surely gone back since the last, if
    /// that is more than a clock that is slewed loses. It was read after the question was sent
    /// and before the answer was received, so that slow answers are no steps.
    pub(super) fn note(&mut self, sample: TimeReading) -> Option<Duration> {
        let last = self.last.replace(sample)?;
        let elapsed = sample.sent.saturating_duration_since(last.received);
        // The least that it can be, had it only been slewed.
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
