//! Where the words of many clients live: a fixed number of slots, and nothing else.

mod check_with;
mod claim;
mod geometry;
mod sweep;
mod update;

pub(crate) use self::update::{By, Full, Written};

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};

use self::geometry::{Geometry, Line};
use crate::algorithm::{Algorithm, AnyAlgorithm};
use crate::seq_cell::SeqCell;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, fence, lock};
use crate::{Decision, Error, KeyedState, Timestamp};

/// A bounded, concurrent table of the clients of one limit.
///
/// The memory of a table is fixed when it is built: about 26 bytes a client
/// of its capacity, and twice that up to a capacity of 4,096. It holds neither keys nor times, only a 64-bit fingerprint
/// and a 64-bit [`Word`](crate::algorithm::Word) for each client. A client whose word is idle is the same
/// as one that was never seen, so its slot is simply used again: there is nothing
/// to sweep and nothing that grows.
///
/// A [`Limiter`](crate::Limiter) is a table (or several) with a clock; use a
/// table directly to keep words under fingerprints of your own.
///
/// # When it is full
///
/// Up to its capacity of clients with something spent at once, a table finds a
/// slot for a new client all but always (in simulation at full capacity and under
/// steady churn, no client was evicted in six million first calls). Beyond that, [`WhenFull`]
/// decides.
///
/// # Concurrency
///
/// Known clients are served without a lock: a few loads and one compare-exchange.
/// A client's first call takes one of 64 locks, chosen by its fingerprint.
///
/// Two keys with the same 64-bit fingerprint share a word: with the default
/// hasher, and ten million clients, the chance that any two do is 3·10⁻⁶.
pub struct Table<S = KeyedState> {
    hasher: S,
    /// What the words mean.
    rule: SeqCell<7>,
    lines: Box<[Line]>,
    geometry: Geometry,
    stripes: Box<[Stripe; STRIPES]>,
    when_full: WhenFull,
    capacity: usize,
    /// What they mean to clients of each tier: words of one rule are words of all.
    tiers: Box<[SeqCell<7>]>,
    turnover: Turnover,
}

/// What changes when a slot changes hands: apart from what every call reads.
#[repr(align(64))]
struct Turnover {
    /// The latest moment since when a client had been idle whose slot was reclaimed.
    /// A client that is not found may have been that one, so if time goes back it
    /// is taken to have been idle since then, and not for ever.
    reclaimed: AtomicU64,
    /// How many clients with something spent were forgotten.
    evictions: AtomicU64,
    /// When the rules last changed: time does not go back for the next change.
    changed: AtomicU64,
}

impl Turnover {
    /// Notes that the rules change at `now`, and tells when: not before the last time. If time
    /// went back between two changes, what passed in between would be refilled twice, at two
    /// rates.
    fn change(&self, now: Timestamp) -> Timestamp {
        // Every stripe is held, whose lock orders it.
        let last = self.changed.fetch_max(now.as_nanos(), Ordering::Relaxed);
        now.max(Timestamp::from_nanos(last))
    }

    /// Notes that a slot is reclaimed, before it changes hands.
    fn reclaim(&self, idle_since: Timestamp) {
        // Ordered by the release of the slot's new fingerprint, which comes after.
        self.reclaimed.fetch_max(idle_since.as_nanos(), Ordering::Relaxed);
    }
}

/// One of the locks under which clients enter the table.
#[repr(align(64))]
struct Stripe(Mutex<()>);

/// The word of a slot that is changing hands.
const CLAIMED: u64 = u64::MAX;

#[cfg(not(spillgate_loom))]
const STRIPES: usize = 64;
#[cfg(spillgate_loom)]
const STRIPES: usize = 2;

/// What identifies a client in a table: a hash of its key, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// A fingerprint from its bits. Zero marks an empty slot, so it becomes one.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(if bits == 0 { 1 } else { bits })
    }

    /// The bits, for storing.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// What becomes of a new client when the table has no idle slot for it.
///
/// A client lives in one of 24 slots, so "the table" is these 24: a table of capacity `c` has
/// about `1.6·c` slots, and a flood has to keep most of them busy at once. A client is busy
/// until what it spent is refilled. So a flood of `f` new keys a second, each of which takes
/// `r` seconds to be refilled, fills a capacity of about `1.6·c = f·r` slots. A larger capacity
/// resists it under every choice.
///
/// | | a throttled client is freed by | a new client |
/// |---|---|---|
/// | `Evict` | a flood of keys that have spent no less than it: with a burst of 1, any | always gets a slot |
/// | `Protect` | no call; a client that has something left (4 of 5 spent) may be forgotten | is denied where all 24 are exhausted |
/// | `Deny` | no call, and no call makes anybody forgotten | is denied where all 24 have anything spent |
///
/// A [debt](Table::debit_at) of a client without a slot enters under every choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenFull {
    /// Forget the client that has spent the smallest share of its burst among 24.
    #[default]
    Evict,
    /// Forget that one if it could still spend something, and deny the new client if it could
    /// not: then all of them are throttled, and stay so.
    Protect,
    /// Deny the new client until a slot is idle.
    Deny,
}

impl Table {
    /// A table for `capacity` clients at once.
    ///
    /// # Errors
    ///
    /// If the capacity is 0, above 2³², or more than memory can be had for.
    pub fn new(algorithm: AnyAlgorithm, capacity: usize) -> Result<Self, Error> {
        Self::with_hasher(algorithm, capacity, WhenFull::default(), KeyedState::new())
    }
}

impl<S> Table<S> {
    /// A table with its own hasher and its own way of being full.
    ///
    /// Fingerprints stand for clients, so a hasher that is not keyed, or whose
    /// key is known, lets a caller share or steal another's word.
    ///
    /// # Errors
    ///
    /// As for [`new`](Table::new).
    pub fn with_hasher(
        algorithm: AnyAlgorithm,
        capacity: usize,
        when_full: WhenFull,
        hasher: S,
    ) -> Result<Self, Error> {
        Self::with_tiers(algorithm, &[], capacity, when_full, hasher)
    }

    /// A table for clients of several tiers, whose algorithms [go
    /// together](crate::AlgorithmKind::with_quotas).
    pub(crate) fn with_tiers(
        algorithm: AnyAlgorithm,
        tiers: &[AnyAlgorithm],
        capacity: usize,
        when_full: WhenFull,
        hasher: S,
    ) -> Result<Self, Error> {
        let geometry = Geometry::for_capacity(capacity)?;
        Ok(Self {
            hasher,
            rule: SeqCell::new(algorithm.to_raw()),
            tiers: tiers.iter().map(|tier| SeqCell::new(tier.to_raw())).collect(),
            lines: geometry.lines()?,
            geometry,
            stripes: Box::new(std::array::from_fn(|_| Stripe(Mutex::new(())))),
            when_full,
            capacity,
            turnover: Turnover {
                reclaimed: AtomicU64::new(0),
                evictions: AtomicU64::new(0),
                changed: AtomicU64::new(0),
            },
        })
    }

    /// The fingerprint of a key.
    #[expect(clippy::manual_hash_one, reason = "`hash_one` is not always inlined")]
    #[inline(always)]
    #[must_use]
    pub fn fingerprint<K: Hash + ?Sized>(&self, key: &K) -> Fingerprint
    where
        S: BuildHasher,
    {
        let mut hasher = self.hasher.build_hasher();
        key.hash(&mut hasher);
        Fingerprint::from_bits(hasher.finish())
    }

    /// What [`check_at`](Self::check_at) would answer, given a slot, without spending:
    /// what remains is what there is now.
    pub fn peek_at(&self, client: Fingerprint, cost: u64, now: Timestamp) -> Decision {
        self.peek_by(client, By::Base, cost, now)
    }

    /// Takes `amount` from a client whether or not it passes, going into debt
    /// beyond the burst, as deep as a word can tell. When the table is full, another client is
    /// forgotten whatever [`WhenFull`] says: a debt must be remembered.
    pub fn debit_at(&self, client: Fingerprint, amount: u64, now: Timestamp) {
        if amount > 0 {
            self.rewrite(client, By::Base, now, |algorithm, word| {
                algorithm.debit_up_to(word, now, amount, algorithm.deepest())
            });
        }
    }

    /// Gives `amount` back to a client, never more than it has spent.
    pub fn refund_at(&self, client: Fingerprint, amount: u64, now: Timestamp) {
        self.rewrite(client, By::Base, now, |algorithm, word| algorithm.refund(word, now, amount));
    }

    /// Makes a client as if it had never been seen.
    pub fn reset_at(&self, client: Fingerprint, now: Timestamp) {
        self.rewrite(client, By::Base, now, |algorithm, _| algorithm.fresh(now));
    }

    /// What the words of this table mean.
    pub fn algorithm(&self) -> AnyAlgorithm {
        self.rule_of(By::Base)
    }

    /// What a client's word means in one call.
    pub(crate) fn rule_of(&self, by: By<'_>) -> AnyAlgorithm {
        loop {
            if let Some(algorithm) = self.cell_of(by).read(AnyAlgorithm::from_raw) {
                return if let By::Call(bucket) = by { (*bucket).into() } else { algorithm };
            }
            // Whoever changes it holds every stripe.
            drop(lock(&self.stripes[0].0));
        }
    }

    /// What happens to a new client when there is no room.
    pub(crate) fn when_full(&self) -> WhenFull {
        self.when_full
    }

    /// How many clients with something spent the table is made for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many slots there are: somewhat more than the capacity.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.lines.len() * geometry::SLOTS_A_LINE
    }

    /// How many clients were forgotten although they had something spent. If this
    /// keeps growing, the capacity is too small.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        // A count: it orders nothing.
        self.turnover.evictions.load(Ordering::Relaxed)
    }

    /// The hasher that fingerprints are made with.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Where it stands what a client's word means in one call, and whether that changes.
    #[inline(always)]
    fn cell_of(&self, by: By<'_>) -> &SeqCell<7> {
        match by {
            By::Base | By::Call(_) => &self.rule,
            By::Tier(tier) => &self.tiers[tier],
        }
    }

    /// The rules of all tiers, the table's own first. A stripe must be held.
    fn rules(&self) -> impl Iterator<Item = AnyAlgorithm> {
        std::iter::once(&self.rule)
            .chain(&self.tiers)
            .filter_map(|rule| rule.read(AnyAlgorithm::from_raw))
    }

    /// The rule by which slots are idle, and busy ones are compared: nobody is idle by it who
    /// is not in every tier.
    fn idle_rule(&self) -> AnyAlgorithm {
        self.idle_rule_of(self.algorithm())
    }

    fn idle_rule_of(&self, base: AnyAlgorithm) -> AnyAlgorithm {
        if self.tiers.is_empty() { base } else { self.rules().fold(base, AnyAlgorithm::slower) }
    }

    fn stripe(&self, client: Fingerprint) -> &Mutex<()> {
        &self.stripes[client.0 as usize % STRIPES].0
    }

    /// Keeps every slot with its client, and every client out that is not in.
    fn hold_stripes(&self) -> [MutexGuard<'_, ()>; STRIPES] {
        self.stripes.each_ref().map(|stripe| lock(&stripe.0))
    }

    /// The moment since which a client that is not in the table may have been idle.
    fn reclaimed(&self) -> Timestamp {
        // Pairs with the release of a fingerprint in `claim` and `purge`: whoever has
        // seen it in place of the old one also sees what was noted before.
        fence(Ordering::Acquire);
        Timestamp::from_nanos(self.turnover.reclaimed.load(Ordering::Relaxed))
    }
}

impl<S> fmt::Debug for Table<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("capacity", &self.capacity)
            .field("slots", &self.slots())
            .field("evictions", &self.evictions())
            .finish_non_exhaustive()
    }
}
