use tokio::sync::watch;
use tollgate::Decision;

use crate::Terms;
use crate::engine::EngineError;

/// A take under way. There is never more than one for a caller: all others wait for it.
#[derive(Clone, Debug)]
pub(super) struct Flight(watch::Receiver<Option<Landed>>);

/// What is to be taken.
#[derive(Debug)]
pub(super) struct Order<C> {
    pub(super) caller: C,
    pub(super) terms: Terms,
    pub(super) least: u64,
    pub(super) most: u64,
    /// What the call costs that cannot go on without, if there is one.
    pub(super) cost: Option<u64>,
    /// Tells those who wait.
    pub(super) landing: watch::Sender<Option<Landed>>,
}

/// What has become of a take.
#[derive(Clone, Debug)]
pub(super) enum Landed {
    /// The call that it was for is decided.
    Decided(Decision),
    /// Whoever waits may look again.
    Again,
    /// The engine did not answer.
    Failed(EngineError),
}

impl Flight {
    /// A take that begins, and what tells when it has landed.
    pub(super) fn begin() -> (Self, watch::Sender<Option<Landed>>) {
        let (landing, flight) = watch::channel(None);
        (Self(flight), landing)
    }

    /// False if it will never land, since nobody is there any more to tell.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.has_changed().is_ok()
    }

    /// True if it is the one that this tells of.
    pub(super) fn is_of(&self, landing: &watch::Sender<Option<Landed>>) -> bool {
        self.0.same_channel(&landing.subscribe())
    }

    /// Waits until it has landed.
    pub(super) async fn landed(mut self) -> Landed {
        let landed = self.0.wait_for(Option::is_some).await;
        landed.ok().and_then(|landed| landed.clone()).unwrap_or(Landed::Again)
    }
}
