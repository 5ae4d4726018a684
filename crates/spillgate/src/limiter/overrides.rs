use std::collections::HashMap;

use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::{Fingerprint, Quota, Timestamp};

/// The clients that have a quota of their own.
///
/// They are few and known by name, so each has a permanent word, outside the
/// table and never evicted. Every check has to ask whether its client is one of
/// them: a filter of 4096 bits says no at once for almost all that are not.
///
/// A client's word is in the table or here, never in both. Whoever the filter sends here
/// holds the client's stripe for the whole call, also if it then goes to the table, so that
/// no override comes or goes meanwhile. Whoever it does not send here may find the client's
/// word in the table, which is the only one then; but before it enters a client there, it asks
/// the filter again.
pub(super) struct Overrides {
    filter: [AtomicU64; FILTER_WORDS],
    stripes: Box<[Mutex<Stripe>]>,
    /// Held while one comes or goes, before a stripe is.
    changing: Mutex<()>,
}

type Stripe = HashMap<Fingerprint, Pinned>;

/// One client's own quota and word.
pub(super) struct Pinned {
    pub(super) quota: Quota,
    pub(super) algorithm: AnyAlgorithm,
    pub(super) word: Word,
    /// The word that the client had in the table, by the table's rule: it counts again when
    /// the override goes.
    pub(super) base: Option<Word>,
    /// When it was last given: time does not go back for the next quota.
    pub(super) since: Timestamp,
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

    /// False if the client has no override, true if it may have one.
    #[inline(always)]
    pub(super) fn may_have(&self, client: Fingerprint) -> bool {
        let (word, bit) = place(client);
        // A hint, unless a stripe of the table is held: `set` takes the client out of the
        // table, under that stripe, after it has set the bit.
        self.filter[word].load(Ordering::Relaxed) & bit != 0
    }

    /// What `act` makes of the client's override, if it has one. None comes or goes meanwhile.
    pub(super) fn with<T>(
        &self,
        client: Fingerprint,
        act: impl FnOnce(Option<&mut Pinned>) -> T,
    ) -> T {
        act(self.stripe(client).get_mut(&client))
    }

    /// Gives the client the override that `make` makes of its current one, while
    /// [held](Self::hold).
    pub(super) fn set(
        &self,
        _changing: &MutexGuard<'_, ()>,
        client: Fingerprint,
        make: impl FnOnce(Option<&mut Pinned>) -> Pinned,
    ) {
        let mut stripe = self.stripe(client);
        // First, so that nobody enters the client again once `make` has taken it out of the
        // table.
        let (word, bit) = place(client);
        self.filter[word].fetch_or(bit, Ordering::Relaxed);
        let pinned = make(stripe.get_mut(&client));
        stripe.insert(client, pinned);
    }

    /// Takes the client's override away, after `hand_over` has found another place
    /// for its word. Its bit stays in the filter, since others may share it.
    pub(super) fn remove(
        &self,
        client: Fingerprint,
        hand_over: impl FnOnce(&Pinned),
    ) -> Option<Quota> {
        let _changing = self.hold();
        let mut stripe = self.stripe(client);
        hand_over(stripe.get(&client)?);
        stripe.remove(&client).map(|pinned| pinned.quota)
    }

    /// Lets no override come or go, and no quota change: the words that overrides keep of the
    /// table, and the table's rule, go together.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.changing)
    }

    /// Every client's override. Locks one stripe after the other.
    pub(super) fn each(&self, mut visit: impl FnMut(Fingerprint, &mut Pinned)) {
        for stripe in &self.stripes {
            lock(stripe).iter_mut().for_each(|(client, pinned)| visit(*client, pinned));
        }
    }

    fn stripe(&self, client: Fingerprint) -> MutexGuard<'_, Stripe> {
        let index = client.to_bits() as usize % STRIPES;
        lock(&self.stripes[index])
    }
}

/// Which word and bit of the filter stand for a client.
#[inline(always)]
fn place(client: Fingerprint) -> (usize, u64) {
    let bits = client.to_bits();
    ((bits >> 6) as usize % FILTER_WORDS, 1 << (bits % 64))
}

impl Pinned {
    /// Takes a step on the word, as a table does.
    pub(super) fn act<T>(
        &mut self,
        mut step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> T {
        let (answer, next) = step(&self.algorithm, self.word);
        self.word = next.unwrap_or(self.word);
        answer
    }

    /// Adds what the client had spent elsewhere: the larger debt stays.
    pub(super) fn add(&mut self, word: Word, meaning: &AnyAlgorithm, now: Timestamp) {
        let carried = self.algorithm.carry_over(word, now, meaning);
        self.word = self.algorithm.larger(carried, self.word, now);
    }

    /// Adds what the client had spent in a table, by the rule of the present one.
    pub(super) fn add_base(&mut self, word: Word, rule: &AnyAlgorithm, now: Timestamp) {
        self.base = Some(self.base.map_or(word, |base| rule.larger(word, base, now)));
    }

    /// The word that the client has by the table's rule when the override goes: the stricter
    /// of what it has spent under the override, and of what it had spent before.
    pub(super) fn left(&self, rule: &AnyAlgorithm, now: Timestamp) -> Word {
        let carried = rule.carry_over(self.word, now, &self.algorithm);
        self.base.map_or(carried, |base| rule.larger(base, carried, now))
    }
}
