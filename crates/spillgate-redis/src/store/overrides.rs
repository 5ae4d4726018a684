use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spillgate::Timestamp;

use super::cache::{Cache, Cached};
use crate::Name;
use crate::effective_quota::EffectiveQuota;

/// The overrides set at run time that this node has met.
///
/// Redis stores them with the words: a node that does not know one learns it from the reply and asks
/// again, so any entry may be evicted. Entries expire soon: a state that has gone back to the terms of
/// the policy may expire, and a node that still uses the override would bring it back.
pub(super) struct OverrideCache {
    entries: Cache<CachedOverride>,
    lifetime: Duration,
    /// False until the first override: then no lookup is needed.
    is_used: AtomicBool,
}

#[derive(Clone, Copy)]
struct CachedOverride {
    /// `None` if it was removed.
    quota: Option<EffectiveQuota>,
    /// When Redis was asked, by this node's clock.
    sent: Timestamp,
}

/// Keeps the most recently asked.
impl Cached for CachedOverride {
    fn until(&self) -> Timestamp {
        self.sent
    }
}

impl OverrideCache {
    /// Room for about so many callers. Entries live no longer than the margin of an expired state.
    pub(super) fn new(callers: usize, margin: Duration) -> Self {
        // Half of it, since a call takes a while to arrive.
        let lifetime = margin.min(Duration::from_secs(1)) / 2;
        Self { entries: Cache::new(callers), lifetime, is_used: AtomicBool::new(false) }
    }

    /// The override of a caller, if known and recent.
    pub(super) fn get(&self, name: Name, local: Timestamp) -> Option<EffectiveQuota> {
        let entry = self.entry(name)?;
        entry.quota.filter(|_| local.since(entry.sent) < self.lifetime)
    }

    /// The last known override of a caller: `Some(None)` if it was removed.
    pub(super) fn last(&self, name: Name) -> Option<Option<EffectiveQuota>> {
        self.entry(name).map(|entry| entry.quota)
    }

    /// Remembers the override of a caller, or that it was removed.
    pub(super) fn set(&self, name: Name, quota: Option<EffectiveQuota>, sent: Timestamp) {
        if quota.is_some() {
            self.is_used.store(true, Ordering::Relaxed);
        }
        self.entries.with(name, |entry| *entry = Some(CachedOverride { quota, sent }));
    }

    fn entry(&self, name: Name) -> Option<CachedOverride> {
        // Relaxed: a hint; the locks of the cache order its entries.
        if !self.is_used.load(Ordering::Relaxed) {
            return None;
        }
        self.entries.with(name, |entry| *entry)
    }
}
