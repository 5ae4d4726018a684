use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spillgate::Timestamp;

use super::cache::{Cache, Cached};
use crate::Name;
use crate::counted::Counted;

/// The overrides that were given at run time, as far as this node has met them.
///
/// The engine has them, beside the words: a node that does not know of one is told so, and
/// asks again. So this may forget any of them. It must not believe in one for long: a state
/// that has gone back to the policy's terms may expire, and a node that asks by the override
/// then would bring it back.
pub(super) struct Given {
    learned: Cache<Learned>,
    /// For how long what was learned is believed.
    lifetime: Duration,
    /// False as long as there have been none: then nobody looks.
    are_some: AtomicBool,
}

#[derive(Clone, Copy)]
struct Learned {
    /// `None` if it was taken away.
    given: Option<Counted>,
    /// When the engine was asked, by this node's clock.
    sent: Timestamp,
}

/// Who was asked about last is kept.
impl Cached for Learned {
    fn until(&self) -> Timestamp {
        self.sent
    }
}

impl Given {
    /// Overrides of about so many callers, each believed for as long as a state is kept that
    /// nothing is spent of.
    pub(super) fn new(callers: usize, margin: Duration) -> Self {
        // Half of it, since a question takes a while to arrive.
        let lifetime = margin.min(Duration::from_secs(1)) / 2;
        Self { learned: Cache::new(callers), lifetime, are_some: AtomicBool::new(false) }
    }

    /// What a caller was given.
    pub(super) fn of(&self, name: Name, local: Timestamp) -> Option<Counted> {
        let learned = self.learned(name)?;
        learned.given.filter(|_| local.since(learned.sent) < self.lifetime)
    }

    /// What a caller was last known to be given: `Some(None)` if that was taken away.
    pub(super) fn last(&self, name: Name) -> Option<Option<Counted>> {
        self.learned(name).map(|learned| learned.given)
    }

    /// Remembers what a caller was given, or that this was taken away.
    pub(super) fn learn(&self, name: Name, given: Option<Counted>, sent: Timestamp) {
        if given.is_some() {
            self.are_some.store(true, Ordering::Relaxed);
        }
        self.learned.with(name, |learned| *learned = Some(Learned { given, sent }));
    }

    fn learned(&self, name: Name) -> Option<Learned> {
        // A hint, as all of this: the cache's locks order what they hold.
        if !self.are_some.load(Ordering::Relaxed) {
            return None;
        }
        self.learned.with(name, |learned| *learned)
    }
}
