use std::collections::HashMap;

use super::tiers::TierIndex;
use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::{Fingerprint, Quota, Timestamp};

/// The callers with their own quota.
///
/// They are few, so each has a permanent word outside the table that is never evicted. Every
/// check has to know whether its caller is one of them: a filter of 4096 bits excludes almost
/// all that are not.
///
/// A caller's word is in the table or here, never in both. A call that the filter sends here
/// holds the caller's stripe throughout, even if it then goes to the table, so that the override
/// does not change. A call that the filter does not send here may find the caller's word in the
/// table, which is then the only one; but before it enters a caller there, it reads the filter
/// again.
pub(super) struct Overrides {
    filter: [AtomicU64; FILTER_WORDS],
    stripes: Box<[Mutex<Stripe>]>,
    /// Held while an override is set or removed. Locked before a stripe.
    changing: Mutex<()>,
}

pub(super) type Stripe = HashMap<Fingerprint, Pinned>;

/// The quota and word of one caller.
pub(super) struct Pinned {
    pub(super) quota: Quota,
    pub(super) algorithm: AnyAlgorithm,
    pub(super) word: Word,
    /// The word that the caller had in the table, by the table's rule: it counts again when
    /// the override is removed.
    pub(super) base: Option<Word>,
    /// When it was last set: time does not go back for the next quota.
    pub(super) since: Timestamp,
    /// When it ends, if it does by itself.
    pub(super) until: Option<Timestamp>,
    /// The caller's tier in its last call, or when it was set.
    pub(super) tier: TierIndex,
}

// Loom explores every interleaving, so it gets the fewest.
#[cfg(not(spillgate_loom))]
mod size {
    pub(super) const FILTER_WORDS: usize = 64;
    pub(super) const STRIPES: usize = 16;
}
#[cfg(spillgate_loom)]
mod size {
    pub(super) const FILTER_WORDS: usize = 1;
    pub(super) const STRIPES: usize = 1;
}
use size::{FILTER_WORDS, STRIPES};

impl Overrides {
    pub(super) fn new() -> Self {
        Self {
            filter: std::array::from_fn(|_| AtomicU64::new(0)),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            changing: Mutex::default(),
        }
    }

    /// False if the caller has no override, true if it may have one.
    #[inline(always)]
    pub(super) fn may_have(&self, caller: Fingerprint) -> bool {
        let (word, bit) = place(caller);
        // A hint, unless a stripe of the table is held: `set` takes the caller out of the
        // table, under that stripe, after it has set the bit.
        self.filter[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Calls `act` with the caller's override, if it has one, which does not change until then.
    pub(super) fn with<T>(
        &self,
        caller: Fingerprint,
        act: impl FnOnce(Option<&mut Pinned>) -> T,
    ) -> T {
        act(self.stripe(caller).get_mut(&caller))
    }

    /// Sets the override that `make` returns for the current one, while [held](Self::hold).
    pub(super) fn set(
        &self,
        _changing: &MutexGuard<'_, ()>,
        caller: Fingerprint,
        make: impl FnOnce(Option<&mut Pinned>) -> Pinned,
    ) {
        let mut stripe = self.stripe(caller);
        // First, so that no call enters the caller again once `make` has removed it from the
        // table.
        let (word, bit) = place(caller);
        self.filter[word].fetch_or(bit, Ordering::Relaxed);
        let pinned = make(stripe.get_mut(&caller));
        stripe.insert(caller, pinned);
    }

    /// Removes the caller's override once `hand_over` has stored its word elsewhere, while
    /// [held](Self::hold). If that returns `None`, the override stays. Its bit stays in the filter
    /// in any case, since others may share it.
    pub(super) fn remove<T>(
        &self,
        _changing: &MutexGuard<'_, ()>,
        caller: Fingerprint,
        hand_over: impl FnOnce(&Pinned) -> Option<T>,
    ) -> Option<T> {
        let mut stripe = self.stripe(caller);
        let result = hand_over(stripe.get(&caller)?)?;
        stripe.remove(&caller);
        Some(result)
    }

    /// Blocks changes of overrides and quotas: the table words that overrides keep must match
    /// the table's rule.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.changing)
    }

    /// Prevents every override from changing.
    pub(super) fn hold_stripes(&self) -> Vec<MutexGuard<'_, Stripe>> {
        self.stripes.iter().map(lock).collect()
    }

    /// Visits every override. Locks one stripe after the other.
    pub(super) fn each(&self, mut visit: impl FnMut(Fingerprint, &mut Pinned)) {
        for stripe in &self.stripes {
            lock(stripe).iter_mut().for_each(|(caller, pinned)| visit(*caller, pinned));
        }
    }

    /// The overrides among which the caller's is. They do not change while it is held.
    pub(super) fn stripe(&self, caller: Fingerprint) -> MutexGuard<'_, Stripe> {
        let index = caller.to_bits() as usize % STRIPES;
        lock(&self.stripes[index])
    }
}

/// The word and bit of a caller in the filter.
#[inline(always)]
fn place(caller: Fingerprint) -> (usize, u64) {
    let bits = caller.to_bits();
    ((bits >> 6) as usize % FILTER_WORDS, 1 << (bits % 64))
}

impl Pinned {
    /// Applies a step to the word, as a table does.
    pub(super) fn act<T>(
        &mut self,
        mut step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> T {
        let (answer, next) = step(&self.algorithm, self.word);
        self.word = next.unwrap_or(self.word);
        answer
    }

    /// Merges what the caller had spent elsewhere: the larger debt stays.
    pub(super) fn add(&mut self, word: Word, meaning: &AnyAlgorithm, now: Timestamp) {
        let carried = self.algorithm.carry_over(word, now, meaning);
        self.word = self.algorithm.larger(carried, self.word, now);
    }

    /// Merges what the caller had spent in a table, by the rule of the current one.
    pub(super) fn add_base(&mut self, word: Word, rule: &AnyAlgorithm, now: Timestamp) {
        self.base = Some(self.base.map_or(word, |base| rule.larger(word, base, now)));
    }

    /// The caller's word by the table's rule when the override is removed: the stricter of what
    /// it has spent under the override and what it had spent before.
    pub(super) fn left(&self, rule: &AnyAlgorithm, now: Timestamp) -> Word {
        let carried = rule.carry_over(self.word, now, &self.algorithm);
        self.base.map_or(carried, |base| rule.larger(base, carried, now))
    }
}
