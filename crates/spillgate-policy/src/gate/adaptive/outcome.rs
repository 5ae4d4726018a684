//! What adaptive limits have decided about a request.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::Timestamp;
use spillgate::adaptive::{Ending, Priority};

use super::live::LiveLimit;
use crate::Answer;
use crate::gate::Outcome;

/// What adaptive limits add to an outcome.
#[derive(Default)]
pub(in crate::gate) struct AdaptiveOutcome {
    /// How much the request matters, if the policy says so.
    pub(in crate::gate) priority: Option<Priority>,
    /// The place of the limit that shed the request, and when to try again.
    pub(in crate::gate) shed: Option<(usize, Duration)>,
    /// What is to be recorded when the request has ended.
    pub(in crate::gate) samples: SmallVec<[Sample; 1]>,
    /// How long the service took, if whoever asked it knows better.
    pub(in crate::gate) latency: Option<Duration>,
}

/// A call whose ending a limit waits for.
pub(in crate::gate) struct Sample {
    pub(in crate::gate) limit: Arc<LiveLimit>,
    pub(in crate::gate) since: Timestamp,
    /// How long the call waited before it came here, if the limit goes by that.
    pub(in crate::gate) queue_wait: Option<Duration>,
}

impl Outcome<'_> {
    /// The name of the limit that [shed](Answer::Shed) the request.
    #[must_use]
    pub fn shed_by(&self) -> Option<&str> {
        let (place, _) = self.adaptive().filter(|_| self.answer == Answer::Shed)?.shed?;
        Some(&self.policy().rules[place].name)
    }

    /// How much a request matters that a limit which follows load has shed, or let through with a
    /// permit; `None` if the policy does not say how much requests matter.
    #[must_use]
    pub fn priority(&self) -> Option<Priority> {
        self.adaptive()?.priority
    }

    /// When a request that was shed may try again.
    pub(in crate::gate) fn shed_retry_after(&self) -> Option<Duration> {
        self.adaptive()?.shed.map(|(_, retry_after)| retry_after)
    }

    fn adaptive(&self) -> Option<&AdaptiveOutcome> {
        self.rare.as_ref()?.adaptive.as_deref()
    }

    /// Says how long the service took, where that is not the time since the request was allowed;
    /// `None` if nobody knows, or the service was not asked. Then adaptive limits learn nothing from
    /// the request. Call it before [`Gate::settle`](crate::Gate::settle).
    pub fn set_latency(&mut self, latency: Option<Duration>) {
        let Some(adaptive) = self.adaptive_mut() else { return };
        adaptive.latency = latency;
        if latency.is_none() {
            adaptive.samples.clear();
        }
    }

    fn adaptive_mut(&mut self) -> Option<&mut AdaptiveOutcome> {
        self.rare.as_mut()?.adaptive.as_deref_mut()
    }

    /// Measures latency from now on.
    pub(in crate::gate) fn start(&mut self, now: Timestamp) {
        let samples = self.adaptive_mut().into_iter().flat_map(|adaptive| &mut adaptive.samples);
        samples.for_each(|sample| sample.since = now);
    }

    /// Records how the request ended, once.
    pub(in crate::gate) fn record(&mut self, ending: Ending, now: Timestamp) {
        let Some(adaptive) = self.adaptive_mut() else { return };
        let known = adaptive.latency;
        for sample in adaptive.samples.drain(..) {
            // If time went back, nobody knows how long it took.
            let measured = (now >= sample.since).then(|| now.since(sample.since));
            if let Some(latency) = sample.queue_wait.or(known).or(measured) {
                sample.limit.record(ending, latency, 1, now);
            }
        }
    }
}
