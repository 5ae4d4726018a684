use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use spillgate::Decision;
use tokio::sync::Notify;

use crate::counted::Counted;
use crate::engine::EngineError;

/// A take under way. There is never more than one for a caller: all others wait for it.
#[derive(Clone, Debug)]
pub(super) struct Flight(Arc<Board>);

/// What tells those who wait that a take has landed. If it is dropped, nobody waits for ever.
#[derive(Debug)]
pub(super) struct Landing(Arc<Board>);

/// Where all look. Those who wait are woken in the order in which they came, so that a
/// simulation can be replayed.
#[derive(Debug, Default)]
struct Board {
    landed: OnceLock<Landed>,
    waiting: Notify,
}

/// What is to be taken.
#[derive(Debug)]
pub(super) struct Order<C> {
    pub(super) caller: C,
    pub(super) counted: Counted,
    /// As many times this as there is, up to the most.
    pub(super) least: u64,
    pub(super) most: u64,
    /// How many nodes share the bucket.
    pub(super) nodes: NonZeroU32,
    /// What the call costs that cannot go on without, if there is one.
    pub(super) cost: Option<u64>,
    pub(super) landing: Landing,
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
    /// A take that begins.
    pub(super) fn begin() -> (Self, Landing) {
        let board = Arc::new(Board::default());
        (Self(Arc::clone(&board)), Landing(board))
    }

    /// True until it has landed.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.landed.get().is_none()
    }

    /// True if it is the one that this tells of.
    pub(super) fn is_of(&self, landing: &Landing) -> bool {
        Arc::ptr_eq(&self.0, &landing.0)
    }

    /// Waits until it has landed.
    pub(super) async fn landed(self) -> Landed {
        loop {
            // From here on nobody is told without this being woken.
            let told = self.0.waiting.notified();
            if let Some(landed) = self.0.landed.get() {
                return landed.clone();
            }
            told.await;
        }
    }
}

impl Landing {
    /// Tells what has become of the take. The first time counts.
    pub(super) fn tell(&self, landed: Landed) {
        let _ = self.0.landed.set(landed);
        self.0.waiting.notify_waiters();
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.tell(Landed::Again);
    }
}
