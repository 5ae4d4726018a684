//! Storage for the words of many callers: a fixed number of slots.

mod check_with;
mod claim;
mod geometry;
mod owner;
mod sweep;
mod update;

use self::owner::Owner;
pub(crate) use self::owner::{Class, CountedBy, MOST_TIERS};
pub(crate) use self::update::{By, Full, Written};

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};

use self::geometry::{Geometry, Line};
use crate::algorithm::{Algorithm, AnyAlgorithm};
use crate::seq_cell::SeqCell;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, fence, lock};
use crate::{Decision, Error, KeyedState, Timestamp};

/// A bounded, concurrent table of the callers of one limit.
///
/// Memory is allocated when the table is built: about 26 bytes per caller of its capacity, and
/// twice that up to a capacity of 4,096. A slot holds a fingerprint and a 64-bit
/// [`Word`](crate::algorithm::Word). An idle word is equivalent to none, so the slot of an idle
/// caller is simply reused: there is no background task, and nothing grows.
///
/// A [`Limiter`](crate::Limiter) is a table with a clock. Use a table directly to keep words
/// under your own fingerprints; every method that decides takes the time.
///
/// # When it is full
///
/// Up to its capacity of callers with something spent, a table almost always finds a slot for a
/// new caller (in simulation at full capacity and under steady churn, no caller was evicted in
/// six million first calls). Beyond that, [`WhenFull`] decides.
///
/// # Concurrency
///
/// Known callers are lock-free: a few loads and one compare-exchange. A caller's first call
/// takes one of 64 locks, chosen by its fingerprint.
///
/// Two keys with the same fingerprint, which has 57 bits of a hash, share a word: with the default
/// hasher and ten million callers, the probability that any two do is 4·10⁻⁴.
pub struct Table<S = KeyedState> {
    hasher: S,
    /// The algorithm of the words.
    rule: SeqCell<7>,
    lines: Box<[Line]>,
    geometry: Geometry,
    stripes: Box<[Stripe; STRIPES]>,
    when_full: WhenFull,
    capacity: usize,
    /// The algorithm of each tier.
    tiers: Box<[SeqCell<7>]>,
    turnover: Turnover,
}

/// State that changes when a slot changes hands, apart from what every call reads.
#[repr(align(64))]
struct Turnover {
    /// The latest time since which a caller had been idle when its slot was reclaimed. A caller
    /// that is not found may be that one, so if time goes back it counts as idle since then,
    /// and not for ever.
    reclaimed: AtomicU64,
    /// How many callers with something spent were evicted.
    evictions: AtomicU64,
    /// When the rules last changed: time does not go back for the next change.
    changed: AtomicU64,
    /// True if there may be words of quotas that came with calls.
    has_classes: AtomicBool,
}

impl Turnover {
    /// Notes that the rules change, and returns when: at `now`, but not before the last change.
    /// If time went back between two changes, the time between them would refill twice.
    fn change(&self, now: Timestamp) -> Timestamp {
        // Ordered by the locks of all stripes, which are held.
        let last = self.changed.fetch_max(now.as_nanos(), Ordering::Relaxed);
        now.max(Timestamp::from_nanos(last))
    }

    /// Notes that a slot is reclaimed, before it changes hands.
    fn reclaim(&self, idle_since: Timestamp) {
        // Ordered by the release of the slot's new fingerprint, which comes after.
        self.reclaimed.fetch_max(idle_since.as_nanos(), Ordering::Relaxed);
    }
}

/// The rules of a table's words.
struct Rules {
    base: AnyAlgorithm,
    tiers: Vec<AnyAlgorithm>,
    /// True if all words are of the table's own rule.
    are_alike: bool,
}

impl Rules {
    /// The rule of a word.
    #[inline]
    fn of(&self, owner: Owner) -> &AnyAlgorithm {
        match owner.counted_by() {
            CountedBy::Tier(0) => &self.base,
            CountedBy::Tier(tier) => self.tiers.get(tier - 1).unwrap_or(&self.base),
            CountedBy::Call(class) => class.rule(),
        }
    }
}

/// The share of its burst that a caller has spent, on a scale for callers of any quota: below 2⁶².
fn share(rule: &AnyAlgorithm, spent: u64) -> u64 {
    if spent == 0 {
        return 0;
    }
    let share = (u128::from(spent) << 32) / u128::from(rule.whole().max(1));
    u64::try_from(share).unwrap_or(u64::MAX).clamp(1, (1 << 62) - 1)
}

/// One of the locks under which callers enter the table.
#[repr(align(64))]
struct Stripe(Mutex<()>);

/// All of them.
pub(crate) type Stripes<'t> = [MutexGuard<'t, ()>; STRIPES];

/// The word of a slot that is changing hands.
const CLAIMED: u64 = u64::MAX;

#[cfg(not(spillgate_loom))]
const STRIPES: usize = 64;
#[cfg(spillgate_loom)]
const STRIPES: usize = 2;

/// Identifies a caller in a table: a hash of its key, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// A fingerprint from the lower 57 bits. Zero marks an empty slot, so it becomes 1.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        let key = bits << owner::TAG_BITS >> owner::TAG_BITS;
        Self(if key == 0 { 1 } else { key })
    }

    /// The bits, for storing.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// What happens to a new caller when the table has no idle slot for it.
///
/// A caller can be in one of 24 slots, so "full" means these 24: a table of capacity `c` has
/// about `1.6·c` slots, and a flood has to keep most of them busy. A caller is busy until what
/// it has spent is refilled. So a flood of `f` new keys per second, each of which takes `r`
/// seconds to refill, fills `f·r` slots. A larger capacity resists it under every choice.
///
/// | | a throttled caller is freed by | a new caller |
/// |---|---|---|
/// | `Evict` | a flood of keys that have spent no less than it: with a burst of 1, any | always gets a slot |
/// | `Protect` | no call; a caller with something left (4 of 5 spent) may be evicted | is denied if all 24 are exhausted |
/// | `Deny` | no call, and no call evicts anyone | is denied if all 24 have anything spent |
///
/// A [debit](Table::debit_at) of a new caller evicts under every choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenFull {
    /// Evict the caller of the 24 that has spent the smallest share of its burst: if the quota came
    /// with the call, of those of such a quota.
    #[default]
    Evict,
    /// Evict that caller of those who have something left; if all 24 are throttled, the new caller
    /// is denied.
    Protect,
    /// Deny the new caller until a slot is idle.
    Deny,
}

impl Table {
    /// A table for `capacity` callers.
    ///
    /// # Errors
    ///
    /// If the capacity is 0, above 2³², or there is no memory for it.
    pub fn new(algorithm: AnyAlgorithm, capacity: usize) -> Result<Self, Error> {
        Self::with_hasher(algorithm, capacity, WhenFull::default(), KeyedState::new())
    }
}

impl<S> Table<S> {
    /// A table with a hasher and a [`WhenFull`].
    ///
    /// Fingerprints identify callers, so a hasher without a secret key lets a caller share or
    /// take over the word of another.
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

    /// A table for callers of several tiers.
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
                has_classes: AtomicBool::new(false),
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
        // The upper bits, in one instruction.
        Fingerprint::from_bits(hasher.finish() >> owner::TAG_BITS)
    }

    /// What [`check_at`](Self::check_at) would decide, given a slot, without spending.
    pub fn peek_at(&self, caller: Fingerprint, cost: u64, now: Timestamp) -> Decision {
        self.peek_by(caller, By::Base, cost, now)
    }

    /// Spends `amount` unconditionally, into debt as deep as the word can represent. If the table
    /// is full, another caller is evicted whatever [`WhenFull`] says: debts must be kept.
    pub fn debit_at(&self, caller: Fingerprint, amount: u64, now: Timestamp) {
        if amount > 0 {
            self.rewrite(caller, By::Base, now, |algorithm, word| {
                algorithm.debit_up_to(word, now, amount, algorithm.deepest())
            });
        }
    }

    /// Returns `amount` to a caller, but never more than it has spent.
    pub fn refund_at(&self, caller: Fingerprint, amount: u64, now: Timestamp) {
        self.rewrite(caller, By::Base, now, |algorithm, word| algorithm.refund(word, now, amount));
    }

    /// Forgets what a caller has spent.
    pub fn reset_at(&self, caller: Fingerprint, now: Timestamp) {
        self.rewrite(caller, By::Base, now, |algorithm, _| algorithm.fresh(now));
    }

    /// The algorithm of the table's words.
    pub fn algorithm(&self) -> AnyAlgorithm {
        self.rule_of(By::Base)
    }

    /// The algorithm of a caller's word in one call.
    pub(crate) fn rule_of(&self, by: By<'_>) -> AnyAlgorithm {
        loop {
            if let Some(algorithm) = self.cell_of(by).read(AnyAlgorithm::from_raw) {
                return if let By::Call(bucket) = by { (*bucket).into() } else { algorithm };
            }
            // A change of rules holds every stripe.
            drop(lock(&self.stripes[0].0));
        }
    }

    /// What happens to a new caller when the table is full.
    pub(crate) fn when_full(&self) -> WhenFull {
        self.when_full
    }

    /// How many callers can have something spent at the same time.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of slots: more than the capacity.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.lines.len() * geometry::SLOTS_PER_LINE
    }

    /// How many callers were evicted while they had something spent. If it keeps growing,
    /// increase the capacity.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        // A count: it orders nothing.
        self.turnover.evictions.load(Ordering::Relaxed)
    }

    /// Counts callers of whom something was forgotten elsewhere for want of room.
    pub(crate) fn count_evictions(&self, count: u64) {
        self.turnover.evictions.fetch_add(count, Ordering::Relaxed);
    }

    /// The hasher of the fingerprints.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The cell with the rule of a caller's word in one call.
    #[inline(always)]
    fn cell_of(&self, by: By<'_>) -> &SeqCell<7> {
        match by {
            By::Base | By::Call(_) => &self.rule,
            By::Tier(tier) => &self.tiers[tier],
        }
    }

    /// The rules of all tiers, the table's own first. Under a stripe they stay what they are.
    fn rules(&self) -> Rules {
        let tiers = (0..self.tiers.len()).map(|tier| self.rule_of(By::Tier(tier))).collect();
        Rules { base: self.algorithm(), are_alike: self.has_one_rule(), tiers }
    }

    /// True if all words are counted by the table's own rule: under a caller's stripe, all that it
    /// has; elsewhere a hint, by which the first other one may be ranked as if it were alike.
    fn has_one_rule(&self) -> bool {
        self.tiers.is_empty() && !self.turnover.has_classes.load(Ordering::Relaxed)
    }

    fn stripe(&self, caller: Fingerprint) -> &Mutex<()> {
        &self.stripes[caller.0 as usize % STRIPES].0
    }

    /// Prevents every slot from changing hands.
    pub(crate) fn hold_stripes(&self) -> Stripes<'_> {
        self.stripes.each_ref().map(|stripe| lock(&stripe.0))
    }

    /// The time since which a caller that is not in the table may have been idle.
    fn reclaimed(&self) -> Timestamp {
        // Pairs with the release of a fingerprint in `claim` and `purge`: a thread that has
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
