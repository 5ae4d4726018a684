//! Scans of every slot: for inspection, snapshots and changes of quota.

use super::geometry::{Line, SLOTS_PER_LINE};
use super::update::By;
use super::{CLAIMED, CountedBy, Fingerprint, Owner, Rules, Table};
use crate::Timestamp;
use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::sync::{Ordering, lock};

impl<S> Table<S> {
    /// How many callers have something spent at `now`. Scans every slot.
    #[must_use]
    pub fn active_callers_at(&self, now: Timestamp) -> usize {
        self.live(now).count()
    }

    /// Clears the slots of idle callers, and returns how many there were.
    ///
    /// Never necessary: an idle slot is as good as an empty one. Scans every slot.
    pub fn purge_idle_at(&self, now: Timestamp) -> usize {
        self.each_slot().filter(|(line, slot)| self.purge(line, *slot, now)).count()
    }

    /// The fingerprint and word of every caller that has a slot, idle or not.
    ///
    /// Each pair was in the table at some time during the iteration. Callers that enter
    /// concurrently may or may not be included.
    pub fn iter(&self) -> impl Iterator<Item = (Fingerprint, Word)> {
        self.entries().map(|(owner, word)| (owner.caller(), word))
    }

    fn entries(&self) -> impl Iterator<Item = (Owner, Word)> {
        self.each_slot().filter_map(|(line, slot)| line.entry(slot))
    }

    /// The callers with something spent at `now`, their words, and what they are counted by.
    pub(crate) fn live(
        &self,
        now: Timestamp,
    ) -> impl Iterator<Item = (Fingerprint, Word, CountedBy)> {
        let rules = self.rules();
        self.entries().filter_map(move |(owner, word)| {
            let is_live = rules.of(owner).spent(word, now) > 0;
            is_live.then(|| (owner.caller(), word, owner.counted_by()))
        })
    }

    /// Restores callers and words from [`iter`](Self::iter).
    ///
    /// The words must be of this table's algorithm and quota, and the fingerprints
    /// of its hasher. Where a caller is known already, the larger debt stays.
    pub fn restore_at(
        &self,
        callers: impl IntoIterator<Item = (Fingerprint, Word)>,
        now: Timestamp,
    ) {
        for (caller, word) in callers {
            self.rewrite(caller, By::Base, now, |algorithm, known| {
                algorithm.larger(word, known, now)
            });
        }
    }

    /// Changes the quota. What a caller has spent stays spent, in tokens: of the old burst no
    /// more than the new one has, and all debt beyond it. Setting the current quota changes
    /// nothing. If the algorithm changes, all callers start anew.
    ///
    /// Scans every slot, about 10 ms per million; calls wait.
    pub fn set_algorithm_at(&self, new: AnyAlgorithm, now: Timestamp) {
        if self.algorithm() != new {
            self.change_rules(
                new,
                &[],
                || now,
                |line, slot, old, now| match line.owner(slot).counted_by() {
                    // Of another quota.
                    CountedBy::Call(_) => {}
                    CountedBy::Tier(_) => {
                        line.carry_over(slot, |word| new.carry_over(word, now, &old.base));
                    }
                },
            );
        }
    }

    /// Changes the quotas of the table and of its tiers. All words that they count are moved out,
    /// with their tiers, to where what was spent under each quota is kept apart.
    ///
    /// The clock is read when no call decides by the old rules any more: no word is from later.
    /// Returns the time.
    pub(crate) fn set_rules(
        &self,
        new: AnyAlgorithm,
        tiers: &[AnyAlgorithm],
        now: impl FnOnce() -> Timestamp,
        mut move_out: impl FnMut(Fingerprint, Word, usize),
    ) -> Timestamp {
        self.change_rules(new, tiers, now, |line, slot, old, now| {
            let CountedBy::Tier(tier) = line.owner(slot).counted_by() else { return };
            let Some((owner, word)) = line.take_out(slot) else { return };
            let rule = old.of(owner);
            match rule.spent(word, now) {
                0 => self.turnover.reclaim(rule.idle_since(word, now)),
                _ => move_out(owner.caller(), word, tier),
            }
        })
    }

    /// Changes the rules, and each slot by `change`, which is given the old rule.
    fn change_rules(
        &self,
        new: AnyAlgorithm,
        tiers: &[AnyAlgorithm],
        now: impl FnOnce() -> Timestamp,
        mut change: impl FnMut(&Line, usize, &Rules, Timestamp),
    ) -> Timestamp {
        let _entering = self.hold_stripes();
        let old = self.rules();
        // From here on, calls that read the quota wait for a stripe. Those that have read the
        // old one fail to exchange a word that was changed.
        self.rule.begin();
        self.tiers.iter().zip(tiers).for_each(|(rule, _)| rule.begin());
        let now = self.turnover.change(now());
        self.each_slot().for_each(|(line, slot)| change(line, slot, &old, now));
        self.rule.finish(new.to_raw());
        self.tiers.iter().zip(tiers).for_each(|(rule, tier)| rule.finish(tier.to_raw()));
        now
    }

    /// Makes a caller owe at least what `make` returns, given its algorithm. If it owes more
    /// already, that stays.
    pub fn raise_at(
        &self,
        caller: Fingerprint,
        make: impl Fn(&AnyAlgorithm) -> Word,
        now: Timestamp,
    ) {
        self.raise_by(caller, By::Base, make, now);
    }

    /// The same in a tier.
    pub(crate) fn raise_by(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        make: impl Fn(&AnyAlgorithm) -> Word,
        now: Timestamp,
    ) {
        self.rewrite(caller, by, now, |rule, known| rule.larger(make(rule), known, now));
    }

    fn each_slot(&self) -> impl Iterator<Item = (&Line, usize)> {
        self.lines.iter().flat_map(|line| (0..SLOTS_PER_LINE).map(move |slot| (line, slot)))
    }

    /// Empties one slot if its caller is idle.
    fn purge(&self, line: &Line, slot: usize, now: Timestamp) -> bool {
        let Some((owner, word)) = line.entry(slot) else {
            return false;
        };
        // Under a stripe, so that word and quota match: a word that is still in place below
        // was of this quota all along.
        let _entering = lock(self.stripe(owner.caller()));
        let rules = self.rules();
        let algorithm = rules.of(owner);
        let unmoved = line.entry(slot) == Some((owner, word));
        if !unmoved || algorithm.spent(word, now) > 0 {
            return false;
        }
        // Orderings and their reasons as in `claim`.
        self.turnover.reclaim(algorithm.idle_since(word, now));
        let (cell, bits) = (&line.words[slot], word.to_bits());
        if cell.compare_exchange(bits, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        // If the slot has a new caller by now, that one is idle as well: it has the same word.
        line.fingerprints[slot].store(0, Ordering::Release);
        cell.store(0, Ordering::Release);
        true
    }
}

impl Line {
    /// Whose word is in a slot: only a hint, unless every stripe is held.
    pub(super) fn owner(&self, slot: usize) -> Owner {
        Owner::from_bits(self.fingerprints[slot].load(Ordering::Acquire))
    }

    /// The owner of a slot and its word; `None` if it is empty or changing hands.
    pub(super) fn entry(&self, slot: usize) -> Option<(Owner, Word)> {
        // The word on both sides of the fingerprint, as in `attempt`. One that has changed is
        // read again: a caller that never pauses must not be missing in a snapshot.
        let mut bits = self.words[slot].load(Ordering::Acquire);
        loop {
            let owner = self.owner(slot);
            let again = self.words[slot].load(Ordering::Acquire);
            if owner.is_nobody() || bits == CLAIMED {
                return None;
            }
            if again == bits {
                return Some((owner, Word::from_bits(bits)));
            }
            bits = again;
        }
    }

    /// Empties a slot. Every stripe must be held, so that it keeps its caller until then.
    pub(super) fn take_out(&self, slot: usize) -> Option<(Owner, Word)> {
        let owner = self.owner(slot);
        if owner.is_nobody() {
            return None;
        }
        // Orderings and their reasons as in `claim`.
        let bits = self.words[slot].swap(CLAIMED, Ordering::AcqRel);
        self.fingerprints[slot].store(0, Ordering::Release);
        self.words[slot].store(0, Ordering::Release);
        Some((owner, Word::from_bits(bits)))
    }

    /// Notes that the word of a slot is counted otherwise. Every stripe must be held, so that the
    /// slot keeps its caller: a call that has found it already may act on it all the same.
    pub(super) fn pass(&self, slot: usize, owner: Owner) {
        self.fingerprints[slot].store(owner.to_bits(), Ordering::Release);
    }

    /// Replaces the word of a slot, retrying if a call changes it concurrently. Every stripe must
    /// be held, so that the slot keeps its caller.
    fn carry_over(&self, slot: usize, change: impl Fn(Word) -> Word) {
        if self.fingerprints[slot].load(Ordering::Relaxed) == 0 {
            return;
        }
        let cell = &self.words[slot];
        loop {
            let bits = cell.load(Ordering::Acquire);
            let next = change(Word::from_bits(bits)).to_bits();
            // Release pairs with the load in `attempt`: a call that sees this word
            // also sees that the quota is changing.
            if cell.compare_exchange(bits, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }
}
