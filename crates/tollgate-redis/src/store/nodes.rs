use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tollgate::Seed;

use crate::Name;
use crate::engine::Engine;

/// How many nodes there are.
pub(super) struct Nodes {
    /// This one, by a name that nobody else has.
    own: Name,
    configured: Option<NonZeroU32>,
    /// As the engine last said; zero until it has.
    counted: AtomicU32,
}

/// How often a node tells that it is there.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long it counts after it has: a few times may be lost.
const LIFETIME: Duration = Duration::from_secs(5);

impl Nodes {
    pub(super) fn new(configured: Option<NonZeroU32>) -> Self {
        let own = Name::from_bytes(Seed::random().to_bytes());
        Self { own, configured, counted: AtomicU32::new(0) }
    }

    /// How many, if that is known.
    pub(super) fn known(&self) -> Option<NonZeroU32> {
        // Relaxed: one number, which orders nothing else.
        self.configured.or_else(|| NonZeroU32::new(self.counted.load(Ordering::Relaxed)))
    }

    /// How many, and one until that is known.
    pub(super) fn assumed(&self) -> NonZeroU32 {
        self.known().unwrap_or(NonZeroU32::MIN)
    }

    /// Tells that this node is there, again and again. While the engine is away the last
    /// number stands.
    ///
    /// A lower number is believed when it is told twice. An engine that has forgotten everything
    /// knows only of those who have come since: the first would take itself for the only one,
    /// and by its share of all in the next outage. By the second time all others have come.
    pub(super) async fn announce<E: Engine>(&self, engine: &E) {
        let mut before = 1;
        loop {
            if let Ok(nodes) = engine.announce(self.own, LIFETIME).await {
                self.counted.store(nodes.max(before), Ordering::Relaxed);
                before = nodes.max(1);
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
