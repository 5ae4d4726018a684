//! Adaptive limits. They are of this process, whatever the store: they protect the service
//! behind it, by what is seen of it here.

mod acquire;
mod acquired;
mod asked;
mod build;
mod decide;
mod decision;
mod explain;
mod limits;
mod live;
mod outcome;
mod permits;
mod report;
mod without_store;

use std::sync::Arc;
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::adaptive::{AdaptiveStatus, Ending};

pub(super) use self::asked::{Asked, Asking};
pub(super) use self::decide::of_store;
pub(super) use self::explain::answer_of;
pub use self::explain::{AdaptiveExplanation, PriorityExplanation};
pub(super) use self::limits::LiveLimits;
pub(super) use self::outcome::AdaptiveOutcome;
pub use self::permits::RequestPermits;
pub use self::report::CallReport;
use super::{Active, Gate, Outcome};
use crate::Error;
use crate::store::{PermitId, Store};

/// Where an adaptive limit is now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdaptiveState {
    /// The limit's name.
    pub limit: Arc<str>,
    /// What is limited: `concurrency`, `rate` or `share`.
    pub kind: &'static str,
    /// What moves it: `auto`, `target`, `errors`, `aimd` or `load`.
    pub controller: &'static str,
    /// What that looks at: `latency`, `queue-wait`, `errors`, `cpu`, …
    pub signal: &'static str,
    /// Where it is, and why.
    pub status: AdaptiveStatus,
}

impl<L> Active<L> {
    pub(super) fn asking(&self, now: Timestamp) -> Asking<'_> {
        Asking { policy: &self.policy, levels: &self.adaptive.levels, now }
    }

    /// Where the limit of a place is, if it follows load.
    pub(super) fn adaptive_state(&self, place: usize) -> Option<AdaptiveState> {
        let (rule, live) = (&self.policy.rules[place], self.adaptive.get(place)?);
        let terms = rule.adaptive.as_ref()?;
        Some(AdaptiveState {
            limit: Arc::clone(&rule.name),
            kind: terms.kind(),
            controller: terms.controller.name(),
            signal: terms.signal.name(),
            status: live.status(),
        })
    }
}

impl<S: Store> Gate<S> {
    /// Where each adaptive limit is now, in the order of the policy. Empty if there are
    /// none.
    pub fn adaptive_states(&self) -> Vec<AdaptiveState> {
        let active = self.active();
        if !active.policy.has_adaptive {
            return Vec::new();
        }
        active.adaptive.acquired.return_expired(self.store.now());
        let places = 0..active.policy.rules.len();
        places.filter_map(|place| active.adaptive_state(place)).collect()
    }

    /// Notes how calls ended that a program elsewhere made, and how long each took, for an adaptive
    /// limit. [`report_all`](Self::report_all) notes several reports, or none of them.
    ///
    /// # Errors
    ///
    /// If there is no such limit, or it does not follow how calls end.
    pub fn report(
        &self,
        limit: &str,
        ending: Ending,
        latency: Duration,
        count: u64,
    ) -> Result<(), Error> {
        let report = CallReport { limit, ending, latency, count };
        self.report_all(&[report]).map_err(|(_, error)| error)
    }

    /// [Releases](Self::release) permits, and notes how the call ended that held them: a sample of
    /// an adaptive limit, and nothing more for others.
    ///
    /// # Errors
    ///
    /// As for [`release`](Self::release).
    pub async fn release_as(&self, id: PermitId, ending: Ending) -> Result<bool, Error> {
        self.release_with(id, Some(ending)).await
    }

    pub(super) async fn release_with(
        &self,
        id: PermitId,
        ending: Option<Ending>,
    ) -> Result<bool, Error> {
        let active = self.active();
        if active.adaptive.acquired.release(id, ending, self.store.now()) {
            return Ok(true);
        }
        self.store.release(&active.limits, id).await
    }

    /// Notes that a request goes ahead only now, after its [wait](Outcome::wait). The time in which
    /// it waited for a shaper is not latency of the service.
    pub fn start(&self, outcome: &mut Outcome<'_>) {
        outcome.start(self.store.now());
    }

    /// Notes that the service failed to answer an allowed request at all. What it costs stands.
    pub fn fail(&self, outcome: &mut Outcome<'_>) {
        outcome.record(Ending::Failed, self.store.now());
    }
}
