use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use spillgate::Decision;
use tokio::sync::Notify;

use crate::backend::BackendError;
use crate::effective_quota::EffectiveQuota;

/// A take under way. There is never more than one for a caller: all others wait for it.
#[derive(Clone, Debug)]
pub(super) struct PendingTake(Arc<TakeCell>);

/// What tells those who wait that a take has landed. If it is dropped, nobody waits for ever.
#[derive(Debug)]
pub(super) struct TakeNotifier(Arc<TakeCell>);

/// Where all look. Those who wait are woken in the order in which they came, so that a
/// simulation can be replayed.
#[derive(Debug, Default)]
struct TakeCell {
    outcome: OnceLock<TakeOutcome>,
    waiting: Notify,
}

/// What is to be taken.
#[derive(Debug)]
pub(super) struct TakeRequest<C> {
    pub(super) caller: C,
    pub(super) effective: EffectiveQuota,
    /// As many times this as there is, up to the most.
    pub(super) least: u64,
    pub(super) most: u64,
    /// How many nodes share the bucket.
    pub(super) nodes: NonZeroU32,
    /// What the call costs that cannot go on without, if there is one.
    pub(super) cost: Option<u64>,
    pub(super) notifier: TakeNotifier,
}

/// What has become of a take.
#[derive(Clone, Debug)]
pub(super) enum TakeOutcome {
    /// The call that it was for is decided.
    Decided(Decision),
    /// Whoever waits may look again.
    Again,
    /// Redis did not answer.
    Failed(BackendError),
}

impl PendingTake {
    /// A take that begins.
    pub(super) fn begin() -> (Self, TakeNotifier) {
        let cell = Arc::new(TakeCell::default());
        (Self(Arc::clone(&cell)), TakeNotifier(cell))
    }

    /// True until it has landed.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.outcome.get().is_none()
    }

    /// True if it is the one that this tells of.
    pub(super) fn is_of(&self, notifier: &TakeNotifier) -> bool {
        Arc::ptr_eq(&self.0, &notifier.0)
    }

    /// Waits until it has landed.
    pub(super) async fn outcome(self) -> TakeOutcome {
        loop {
            // From here on nobody is told without this being woken.
            let told = self.0.waiting.notified();
            if let Some(outcome) = self.0.outcome.get() {
                return outcome.clone();
            }
            told.await;
        }
    }
}

impl TakeNotifier {
    /// Tells what has become of the take. The first time counts.
    pub(super) fn notify(&self, outcome: TakeOutcome) {
        let _ = self.0.outcome.set(outcome);
        self.0.waiting.notify_waiters();
    }
}

impl Drop for TakeNotifier {
    fn drop(&mut self) {
        self.notify(TakeOutcome::Again);
    }
}
