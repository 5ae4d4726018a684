//! Who met a limit lately, in bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

use spillgate::{HashIsKey, HeavyHitters, KeyedState, Timestamp};
use spillgate_policy::CountedKey;

use super::quota_used::UsedShares;

/// What is known of the last 5 to 10 minutes: two windows, of which the older one is dropped as a
/// whole. So counts cover a known time, and what is over is forgotten.
pub(super) struct RecentCallers {
    current: Window,
    previous: Window,
    /// How many callers are kept of each kind.
    capacity: usize,
}

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(5 * 60);

/// Allowed callers are sampled, so that more entries would only hold noise.
const ALLOWED_SHARE: usize = 4;

struct Window {
    since: Timestamp,
    denied: Callers,
    shadow_denied: Callers,
    allowed: Callers,
    used: UsedShares,
}

type Key = CountedKey<'static>;
type Callers = HeavyHitters<Key>;

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    Denied,
    ShadowDenied,
    Allowed,
}

/// The callers with the most calls of one kind, most first.
///
/// The true count of a caller is between its count and that plus `error`; one that is not listed
/// has at most `error`, or fewer than the last one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TopCallers {
    /// All calls of this kind.
    pub total: u64,
    /// By how much counts may be too low.
    pub error: u64,
    /// The callers, and their counts.
    pub callers: Vec<(CountedKey<'static>, u64)>,
}

/// Who met a limit in the last minutes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LimitCallers {
    /// The limit's name.
    pub limit: String,
    /// Since when calls are counted here: five to ten minutes, or since the first.
    pub since: Timestamp,
    /// Who was denied.
    pub denied: TopCallers,
    /// Who would have been denied, but for shadow mode.
    pub shadow_denied: TopCallers,
    /// Who was allowed: estimated from samples.
    pub allowed: TopCallers,
    /// How many calls left so much of their quota used: up to 10 %, up to 20 %, … up to 100 %.
    /// Estimated from samples.
    pub used: [u64; 10],
}

impl RecentCallers {
    pub(super) fn new(capacity: usize, now: Timestamp) -> Self {
        Self { current: Window::new(capacity, now), previous: Window::new(2, now), capacity }
    }

    /// Counts calls of a key with this [`hash`].
    pub(super) fn add(&mut self, met: Met, hash: u64, count: u64, key: impl FnOnce() -> Key) {
        self.current.callers_mut(met).add_n(hash, count, key);
    }

    pub(super) fn add_used(&mut self, place: usize, count: u64) {
        self.current.used[place] += count;
    }

    /// Drops what is too old.
    pub(super) fn expire(&mut self, now: Timestamp) {
        // A clock that was set back goes on with the window that there is.
        let age = now.since(self.current.since);
        if age < WINDOW {
            return;
        }
        let since = if age < WINDOW * 2 { self.current.since + WINDOW } else { now };
        let last = std::mem::replace(&mut self.current, Window::new(self.capacity, since));
        self.previous = if age < WINDOW * 2 { last } else { Window::new(2, since) };
    }

    pub(super) fn report(&self, limit: &str, most: usize) -> LimitCallers {
        let top = |met| top(self.current.callers(met), self.previous.callers(met), most);
        let mut used = self.current.used;
        used.iter_mut().zip(self.previous.used).for_each(|(sum, other)| *sum += other);
        LimitCallers {
            limit: limit.to_owned(),
            since: self.previous.since,
            denied: top(Met::Denied),
            shadow_denied: top(Met::ShadowDenied),
            allowed: top(Met::Allowed),
            used,
        }
    }
}

impl Window {
    fn new(capacity: usize, since: Timestamp) -> Self {
        Self {
            since,
            denied: Callers::new(capacity),
            shadow_denied: Callers::new(capacity),
            allowed: Callers::new(capacity / ALLOWED_SHARE),
            used: UsedShares::default(),
        }
    }

    fn callers(&self, met: Met) -> &Callers {
        match met {
            Met::Denied => &self.denied,
            Met::ShadowDenied => &self.shadow_denied,
            Met::Allowed => &self.allowed,
        }
    }

    fn callers_mut(&mut self, met: Met) -> &mut Callers {
        match met {
            Met::Denied => &mut self.denied,
            Met::ShadowDenied => &mut self.shadow_denied,
            Met::Allowed => &mut self.allowed,
        }
    }
}

/// Of two windows together. A caller that one of them does not keep has at most its error there.
fn top(current: &Callers, previous: &Callers, most: usize) -> TopCallers {
    let mut sums = HashMap::<u64, (u64, &CountedKey<'static>), HashIsKey>::default();
    for (hash, entry) in current.iter().chain(previous.iter()) {
        sums.entry(hash).or_insert((0, &entry.value)).0 += entry.count;
    }
    let mut callers: Vec<_> = sums.into_iter().collect();
    // Among equals by another secret: the order must not tell anything about the hash of tables.
    static ORDER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let order = |hash: u64| ORDER.hash_one(hash);
    callers.sort_by_cached_key(|(hash, (count, _))| (std::cmp::Reverse(*count), order(*hash)));
    callers.truncate(most);
    TopCallers {
        total: current.total() + previous.total(),
        error: current.error() + previous.error(),
        callers: callers.into_iter().map(|(_, (count, key))| (key.clone(), count)).collect(),
    }
}

/// The hash of a whole key, however much of it is kept.
pub(super) fn hash(key: &CountedKey<'_>) -> u64 {
    KeyedState::new().hash_one(key.as_bytes())
}
