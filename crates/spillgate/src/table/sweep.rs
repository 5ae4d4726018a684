//! Scans of every slot: for inspection, snapshots and changes of quota.

use super::geometry::{Line, SLOTS_PER_LINE};
use super::update::By;
use super::{CLAIMED, Fingerprint, Table};
use crate::Timestamp;
use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::seq_cell::SeqCell;
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
        self.each_slot().filter_map(|(line, slot)| line.entry(slot))
    }

    /// The same for callers with something spent at `now`.
    pub(crate) fn live(&self, now: Timestamp) -> impl Iterator<Item = (Fingerprint, Word)> {
        let rule = self.idle_rule();
        self.iter().filter(move |(_, word)| rule.spent(*word, now) > 0)
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
        let _ = self.set_rules(new, &[], || now);
    }

    /// Changes the quotas of the table and of its tiers. If there are tiers, the tier of a word
    /// is unknown, so buckets keep the time that they owe, and windows their counts.
    ///
    /// The clock is read when no call decides by the old rules any more: no word is from later.
    /// Returns the table's old rule and the time, if anything has changed.
    pub(crate) fn set_rules(
        &self,
        new: AnyAlgorithm,
        tiers: &[AnyAlgorithm],
        now: impl FnOnce() -> Timestamp,
    ) -> Option<(AnyAlgorithm, Timestamp)> {
        let _entering = self.hold_stripes();
        let old = self.idle_rule();
        let rules: Vec<_> = self.rules().collect();
        // A tier that is not named keeps its quota.
        let tier = |(index, old): (usize, &AnyAlgorithm)| *tiers.get(index).unwrap_or(old);
        let tiers: Vec<_> = rules.iter().skip(1).enumerate().map(tier).collect();
        if rules.iter().eq([&new].into_iter().chain(&tiers)) {
            return None;
        }
        // From here on, calls that read the quota wait for a stripe. Those that have read the
        // old one fail to exchange a word that was carried over.
        self.rule.begin();
        self.tiers.iter().for_each(SeqCell::begin);
        let now = self.turnover.change(now());
        for (line, slot) in self.each_slot() {
            line.carry_over(slot, |word| self.carried(word, now, &old, &new));
        }
        self.rule.finish(new.to_raw());
        self.tiers.iter().zip(&tiers).for_each(|(rule, tier)| rule.finish(tier.to_raw()));
        Some((old, now))
    }

    /// A word of this table after a change of rule.
    pub(crate) fn carried(
        &self,
        word: Word,
        now: Timestamp,
        old: &AnyAlgorithm,
        new: &AnyAlgorithm,
    ) -> Word {
        match self.tiers.is_empty() {
            true => new.carry_over(word, now, old),
            false => new.keep(word, now, old),
        }
    }

    /// Makes a caller owe at least what `make` returns, given the table's algorithm. If it owes
    /// more already, that stays.
    pub fn raise_at(
        &self,
        caller: Fingerprint,
        make: impl Fn(&AnyAlgorithm) -> Word,
        now: Timestamp,
    ) {
        self.rewrite(caller, By::Base, now, |rule, known| {
            // A word that is idle in one tier may not be in another.
            let idle_rule = self.rules().fold(*rule, AnyAlgorithm::slower);
            idle_rule.larger(make(rule), known, now)
        });
    }

    fn each_slot(&self) -> impl Iterator<Item = (&Line, usize)> {
        self.lines.iter().flat_map(|line| (0..SLOTS_PER_LINE).map(move |slot| (line, slot)))
    }

    /// Empties one slot if its caller is idle.
    fn purge(&self, line: &Line, slot: usize, now: Timestamp) -> bool {
        let Some((caller, word)) = line.entry(slot) else {
            return false;
        };
        // Under a stripe, so that word and quota match: a word that is still in place below
        // was of this quota all along.
        let _entering = lock(self.stripe(caller));
        let algorithm = self.idle_rule();
        let unmoved = line.entry(slot) == Some((caller, word));
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
    /// The caller of a slot and its word; `None` if it is empty or changing hands.
    fn entry(&self, slot: usize) -> Option<(Fingerprint, Word)> {
        // The word on both sides of the fingerprint, as in `attempt`. One that has changed is
        // read again: a caller that never pauses must not be missing in a snapshot.
        let mut bits = self.words[slot].load(Ordering::Acquire);
        loop {
            let fingerprint = self.fingerprints[slot].load(Ordering::Acquire);
            let again = self.words[slot].load(Ordering::Acquire);
            if fingerprint == 0 || bits == CLAIMED {
                return None;
            }
            if again == bits {
                return Some((Fingerprint::from_bits(fingerprint), Word::from_bits(bits)));
            }
            bits = again;
        }
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
