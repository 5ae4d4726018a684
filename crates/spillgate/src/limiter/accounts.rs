use std::collections::{HashMap, hash_map};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::tiers::{Caller, TierIndex};
use crate::account::{Account, Rule};
use crate::algorithm::{Algorithm, Word};
use crate::hasher::scramble;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, lock, try_lock};
use crate::{Fingerprint, Timestamp};

/// The callers with their own quota, and those whose quota has changed lately.
///
/// They are few, or for a short time, so each has an [`Account`] outside the table that is never
/// evicted. Every check has to know whether its caller is one of them: a filter of 4096 bits
/// excludes almost all that are not.
///
/// What a caller has spent is in the table or here, never in both. A call that the filter sends
/// here holds the caller's stripe throughout, even if it then goes to the table, so that neither
/// the account nor the limiter's quotas change. A call that the filter does not send here may find
/// the caller's word in the table, which is then the only one; but before it enters a caller
/// there, it reads the filter again.
pub(super) struct Accounts {
    filter: [AtomicU64; FILTER_WORDS],
    stripes: Box<[Mutex<Stripe>]>,
    /// Held while an override is set or quotas change. Locked before a stripe.
    changing: Mutex<()>,
    /// Whose turn it is to be swept.
    turn: AtomicU64,
    is_saving: AtomicBool,
}

/// A part of the accounts.
pub(super) struct Stripe {
    /// The limiter's own rule, then those of its tiers. They change while all stripes are held.
    pub(super) rules: Vec<Arc<Rule>>,
    pub(super) entries: HashMap<Fingerprint, Entry, BuildHasherDefault<Spread>>,
    /// How many of them there may be whose quota is not their own.
    most: usize,
    sweep: Sweep,
}

/// A fingerprint is a hash under a secret already: a map only wants it in all bits.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn write_u64(&mut self, bits: u64) {
        self.0 = scramble(bits);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 << 8 | u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Looks at all callers in turn, a few at a time, for those that need no account any more.
#[derive(Default)]
struct Sweep {
    /// Those that it has not seen yet.
    left: Vec<Fingerprint>,
    /// How many callers with a quota of their own there were when it began.
    own: usize,
    has_removed: bool,
    /// When the next one begins.
    next: Timestamp,
}

/// What an account leaves to the table.
pub(super) struct Settled {
    pub(super) word: Word,
    pub(super) tier: TierIndex,
    /// True if what was spent under other quotas is forgotten.
    pub(super) is_cut: bool,
    /// True if it has to leave.
    pub(super) has_to: bool,
}

/// One caller.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) account: Account,
    /// If the quota in force is its own, and for how long.
    pub(super) own: Option<Own>,
    /// The caller's tier in its last call, or when its quota was set.
    pub(super) tier: TierIndex,
}

/// The quota in force is the caller's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// When it ends, if it does by itself.
    pub(super) until: Option<Timestamp>,
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

impl Accounts {
    /// For as many accounts as a table has slots, and a few more.
    pub(super) fn new(rules: &[Arc<Rule>], slots: usize) -> Self {
        let stripe = || Stripe {
            rules: rules.to_vec(),
            entries: HashMap::default(),
            most: (slots / STRIPES).max(LEAST_ROOM),
            sweep: Sweep::default(),
        };
        Self {
            filter: std::array::from_fn(|_| AtomicU64::new(0)),
            stripes: (0..STRIPES).map(|_| Mutex::new(stripe())).collect(),
            changing: Mutex::default(),
            turn: AtomicU64::new(0),
            is_saving: AtomicBool::new(false),
        }
    }

    /// False if the caller has no account, true if it may have one.
    #[inline(always)]
    pub(super) fn may_have(&self, caller: Fingerprint) -> bool {
        let (word, bit) = place(caller);
        // A hint, unless a stripe of the table is held: a caller is taken out of the table, under
        // that stripe, after its bit is set.
        self.filter[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Sends the caller's calls here, before it is taken out of the table.
    pub(super) fn announce(&self, caller: Fingerprint) {
        let (word, bit) = place(caller);
        self.filter[word].fetch_or(bit, Ordering::Relaxed);
    }

    /// Sends only those here who have an account. Others may go to the table again.
    pub(super) fn announce_only(&self, stripes: &mut [MutexGuard<'_, Stripe>]) {
        stripes.iter_mut().for_each(|stripe| stripe.sweep.has_removed = false);
        let mut filter = [0; FILTER_WORDS];
        for caller in stripes.iter().flat_map(|stripe| stripe.entries.keys()) {
            let (word, bit) = place(*caller);
            filter[word] |= bit;
        }
        for (cell, bits) in self.filter.iter().zip(filter) {
            cell.store(bits, Ordering::Relaxed);
        }
    }

    /// Prevents overrides from being set and quotas from changing.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.changing)
    }

    /// The same, unless somebody does already.
    pub(super) fn try_hold(&self) -> Option<MutexGuard<'_, ()>> {
        try_lock(&self.changing)
    }

    /// Prevents every account from changing.
    pub(super) fn hold_stripes(&self) -> Vec<MutexGuard<'_, Stripe>> {
        self.stripes.iter().map(lock).collect()
    }

    /// The next stripe to sweep.
    pub(super) fn next_stripe(&self) -> MutexGuard<'_, Stripe> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        lock(&self.stripes[turn as usize % STRIPES])
    }

    /// From now on no caller leaves its account for the table, or until it may again.
    pub(super) fn save(&self, is_saving: bool) {
        self.is_saving.store(is_saving, Ordering::Relaxed);
        // Ordered by the stripes, under which it is read.
        drop(self.hold_stripes());
    }

    /// True if a caller that left its account now might be saved in neither place.
    pub(super) fn are_being_saved(&self) -> bool {
        self.is_saving.load(Ordering::Relaxed)
    }

    /// All stripes, one after the other.
    pub(super) fn stripes(&self) -> impl Iterator<Item = MutexGuard<'_, Stripe>> {
        self.stripes.iter().map(lock)
    }

    /// The accounts among which the caller's is. They do not change while it is held.
    pub(super) fn stripe(&self, caller: Fingerprint) -> MutexGuard<'_, Stripe> {
        lock(&self.stripes[index(caller)])
    }
}

/// The stripe of a caller, of all that are held.
pub(super) fn of<'s, 'l>(
    stripes: &'s mut [MutexGuard<'l, Stripe>],
    caller: Fingerprint,
) -> &'s mut Stripe {
    &mut stripes[index(caller)]
}

fn index(caller: Fingerprint) -> usize {
    caller.to_bits() as usize % STRIPES
}

/// The word and bit of a caller in the filter.
#[inline(always)]
fn place(caller: Fingerprint) -> (usize, u64) {
    let bits = caller.to_bits();
    ((bits >> 6) as usize % FILTER_WORDS, 1 << (bits % 64))
}

impl Stripe {
    pub(super) fn has(&self, caller: Fingerprint) -> bool {
        self.entries.contains_key(&caller)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Enters a caller with what it had in the table, if anything, in some tier.
    pub(super) fn enter(
        &mut self,
        caller: Caller,
        taken: Option<(Word, TierIndex)>,
        now: Timestamp,
    ) {
        let entry = Entry::new(&self.rules, caller, taken, now);
        self.entries.insert(caller.fingerprint, entry);
    }

    /// Adds what is known of a caller to its account, if it has one.
    pub(super) fn merge(
        &mut self,
        caller: Fingerprint,
        account: Account,
        tier: TierIndex,
        now: Timestamp,
    ) {
        match self.entries.entry(caller) {
            hash_map::Entry::Occupied(known) => known.into_mut().account.merge(account, now),
            hash_map::Entry::Vacant(place) => {
                place.insert(Entry { account, own: None, tier });
            }
        }
    }

    /// The entry of a caller, under the quota that is in force for it at `now`.
    pub(super) fn known(&mut self, caller: Caller, now: Timestamp) -> &mut Entry {
        self.entry_by(caller, now, |entry, rules| entry.come(rules, now))
    }

    /// The entry of a caller that calls in a tier, if need be with nothing spent.
    pub(super) fn entry(&mut self, caller: Caller, now: Timestamp) -> &mut Entry {
        self.entry_by(caller, now, |entry, rules| entry.come_in(caller.tier, rules, now))
    }

    fn entry_by(
        &mut self,
        caller: Caller,
        now: Timestamp,
        come: impl FnOnce(&mut Entry, &[Arc<Rule>]),
    ) -> &mut Entry {
        let Self { rules, entries, .. } = self;
        let fresh = || Entry::new(rules, caller, None, now);
        let entry = entries.entry(caller.fingerprint).or_insert_with(fresh);
        come(entry, rules);
        entry
    }

    /// What the account of a caller would be at `now`, with what it has in the table, if anything.
    pub(super) fn foresee(
        &self,
        caller: Caller,
        in_table: Option<(Word, TierIndex)>,
        now: Timestamp,
    ) -> Account {
        let known = self.entries.get(&caller.fingerprint).cloned();
        let mut entry = known.unwrap_or_else(|| Entry::new(&self.rules, caller, in_table, now));
        entry.come_in(caller.tier, &self.rules, now);
        entry.account
    }

    /// There is room for one more account, since it is that of a caller with its own quota. Those
    /// whose quota ends are known after the next sweep.
    pub(super) fn has_another_own(&mut self) {
        self.sweep.own += 1;
    }

    /// How many callers without a quota of their own have something spent.
    pub(super) fn active_callers(&self, now: Timestamp) -> usize {
        let is_active = |entry: &&Entry| {
            let account = &entry.account;
            entry.own.is_none() && account.rule().algorithm.spent(account.word(), now) > 0
        };
        self.entries.values().filter(is_active).count()
    }

    /// Calls `put_back` with a few callers, now and then. Returns whether all have been looked at,
    /// and some removed by now.
    pub(super) fn sweep(
        &mut self,
        now: Timestamp,
        put_back: impl Fn(&mut Self, Fingerprint) -> bool,
    ) -> bool {
        if self.sweep.left.is_empty() {
            let pause =
                Duration::from_millis(self.entries.len() as u64).max(Duration::from_secs(1));
            // Time may have gone back.
            if now < self.sweep.next.min(now + pause) {
                return false;
            }
            let own = self.entries.values().filter(|entry| entry.own.is_some()).count();
            let left = self.entries.keys().copied().collect();
            self.sweep = Sweep { left, own, next: now + pause, ..self.sweep };
        }
        for _ in 0..CALLERS_AT_ONCE {
            let Some(caller) = self.sweep.left.pop() else { break };
            self.sweep.has_removed |= put_back(self, caller);
        }
        self.sweep.left.is_empty() && self.sweep.has_removed
    }

    /// What a caller leaves to the table whose word tells all that it has spent, or has to, if
    /// there are too many accounts.
    pub(super) fn settled(&mut self, caller: Fingerprint, now: Timestamp) -> Option<Settled> {
        let are_too_many = self.entries.len() > self.most + self.sweep.own;
        let entry = self.entries.get_mut(&caller)?;
        entry.come(&self.rules, now);
        let is_cut = !entry.account.is_settled(now);
        if entry.own.is_some() {
            return None;
        }
        let (word, tier) = (entry.account.word(), entry.tier);
        (!is_cut || are_too_many).then_some(Settled { word, tier, is_cut, has_to: are_too_many })
    }
}

/// There are so many accounts in each stripe before any is cut.
const LEAST_ROOM: usize = 64;

/// So few that a call does not wait for them.
const CALLERS_AT_ONCE: usize = 64;

impl Entry {
    /// A caller with what it has in the table, if anything, in some tier.
    fn new(
        rules: &[Arc<Rule>],
        caller: Caller,
        in_table: Option<(Word, TierIndex)>,
        now: Timestamp,
    ) -> Self {
        let fresh = |tier: TierIndex| (rules[tier].algorithm.fresh(now), tier);
        let (word, tier) = in_table.unwrap_or_else(|| fresh(caller.tier));
        Self { account: Account::new(&rules[tier], word, now), own: None, tier }
    }

    /// The same in the tier of a call.
    fn come_in(&mut self, tier: TierIndex, rules: &[Arc<Rule>], now: Timestamp) {
        self.come(rules, now);
        self.tier = tier;
        self.come(rules, now);
    }

    /// Puts in force what is at `now`: the caller's own quota until it ends, or that of its tier.
    pub(super) fn come(&mut self, rules: &[Arc<Rule>], now: Timestamp) {
        let rule = &rules[self.tier];
        if let Some(own) = self.own {
            let Some(until) = own.until.filter(|until| *until <= now) else { return };
            self.own = None;
            // That of its last tier from its end on: nobody has acted on the account since.
            self.account.change(rule, until);
        }
        self.account.change(rule, now);
    }
}
