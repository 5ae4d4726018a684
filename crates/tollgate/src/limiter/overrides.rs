use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::sync::lock_plain;
use crate::table::Written;
use crate::{Decision, Fingerprint, Quota, Timestamp};

/// The clients that have a quota of their own.
///
/// They are few and known by name, so each has a permanent word, outside the
/// table and never evicted. Every check has to ask whether its client is one of
/// them: a filter of 4096 bits says no at once for almost all that are not.
pub(super) struct Overrides {
    filter: [AtomicU64; FILTER_WORDS],
    stripes: Box<[Mutex<HashMap<Fingerprint, Pinned>>]>,
    /// Held while one comes or goes, before a stripe is.
    changing: Mutex<()>,
}

/// One client's own quota and word.
pub(super) struct Pinned {
    pub(super) quota: Quota,
    pub(super) algorithm: AnyAlgorithm,
    pub(super) word: Word,
}

const FILTER_WORDS: usize = 64;
const STRIPES: usize = 16;

impl Overrides {
    pub(super) fn new() -> Self {
        Self {
            filter: [const { AtomicU64::new(0) }; FILTER_WORDS],
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            changing: Mutex::default(),
        }
    }

    /// False if the client has no override, true if it may have one.
    #[inline(always)]
    pub(super) fn may_have(&self, client: Fingerprint) -> bool {
        let (word, bit) = place(client);
        // A hint: the stripe's lock orders what it leads to.
        self.filter[word].load(Ordering::Relaxed) & bit != 0
    }

    /// What `act` makes of the client's override, if it has one.
    pub(super) fn with<T>(
        &self,
        client: Fingerprint,
        act: impl FnOnce(&mut Pinned) -> T,
    ) -> Option<T> {
        if !self.may_have(client) {
            return None;
        }
        self.stripe(client).get_mut(&client).map(act)
    }

    /// Gives the client the override that `make` makes of its current one.
    pub(super) fn set(&self, client: Fingerprint, make: impl FnOnce(Option<&Pinned>) -> Pinned) {
        let _changing = self.hold();
        let mut stripe = self.stripe(client);
        // First, so that checks of the client wait for the stripe while `make` takes
        // its word out of the table. As in `may_have`, the lock orders it.
        let (word, bit) = place(client);
        self.filter[word].fetch_or(bit, Ordering::Relaxed);
        let pinned = make(stripe.get(&client));
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

    /// Lets no override come or go.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        lock_plain(&self.changing)
    }

    /// Every client's override. Locks one stripe after the other.
    pub(super) fn each(&self, mut visit: impl FnMut(Fingerprint, &Pinned)) {
        for stripe in &self.stripes {
            lock_plain(stripe).iter().for_each(|(client, pinned)| visit(*client, pinned));
        }
    }

    fn stripe(&self, client: Fingerprint) -> MutexGuard<'_, HashMap<Fingerprint, Pinned>> {
        let index = client.to_bits() as usize % STRIPES;
        lock_plain(&self.stripes[index])
    }
}

/// Which word and bit of the filter stand for a client.
#[inline(always)]
fn place(client: Fingerprint) -> (usize, u64) {
    let bits = client.to_bits();
    ((bits >> 6) as usize % FILTER_WORDS, 1 << (bits % 64))
}

impl Pinned {
    pub(super) fn decide(&mut self, cost: u64, now: Timestamp) -> (Decision, Written) {
        let before = self.word;
        let (decision, next) = Decision::of(self.algorithm, before, now, cost);
        self.word = next.unwrap_or(before);
        (decision, Written { before, after: self.word })
    }

    pub(super) fn peek(&self, cost: u64, now: Timestamp) -> Decision {
        Decision::peek(self.algorithm, self.word, now, cost)
    }

    pub(super) fn charge(&mut self, amount: u64, now: Timestamp) {
        self.word = self.algorithm.charge(self.word, now, amount);
    }

    pub(super) fn refund(&mut self, amount: u64, now: Timestamp) {
        self.word = self.algorithm.refund(self.word, now, amount);
    }

    /// Adds what the client had spent elsewhere: the larger debt stays.
    pub(super) fn add(&mut self, word: Word, meaning: &AnyAlgorithm, now: Timestamp) {
        let carried = self.algorithm.carry_over(word, now, meaning);
        self.word = self.algorithm.larger(carried, self.word, now);
    }

    pub(super) fn cancel(&mut self, decision: &Decision, now: Timestamp) -> bool {
        let unmoved = decision.has_spent() && self.word == decision.word();
        if unmoved {
            self.refund(decision.cost(), now);
        }
        unmoved
    }

    pub(super) fn reset(&mut self, now: Timestamp) {
        self.word = self.algorithm.fresh(now);
    }

    pub(super) fn undo(&mut self, written: Written) -> bool {
        let unmoved = self.word == written.after;
        if unmoved {
            self.word = written.before;
        }
        unmoved
    }
}
