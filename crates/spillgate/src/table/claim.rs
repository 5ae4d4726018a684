//! Entering a caller: choose a slot, and take it over.

use std::time::Duration;

use super::geometry::{Group, Line, PREFERRED_UP_TO, SLOTS_PER_LINE};
use super::update::{By, Full};
use super::{CLAIMED, Owner, Rules, Table, WhenFull, share};
use crate::Timestamp;
use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::sync::{Ordering, yield_now};

/// A slot as it was read.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    line: &'a Line,
    slot: usize,
    bits: u64,
    /// What its caller has spent. Zero if the slot is idle.
    spent: u64,
    /// The [share] of its burst that is, and above it [`PROTECTED`] and [`FOREIGN`].
    weight: u64,
    rule: &'a AnyAlgorithm,
}

impl Candidate<'_> {
    fn is_empty(&self) -> bool {
        self.bits == 0
    }

    /// Slots of a lower rank are taken first: empty ones, then those idle longest (times are in
    /// a word's upper bits), then those that have spent the smallest share of their burst. Quotas
    /// that come with calls are as good as limits of their own, so that a flood under one of them
    /// frees nobody under another.
    fn rank(self) -> (u64, u64) {
        (self.weight, self.bits)
    }
}

/// The weight of those who are exhausted, in a table that protects them.
const PROTECTED: u64 = 1 << 63;

/// The weight of those who have spent under a quota of another class than the new caller's.
const FOREIGN: u64 = 1 << 62;

impl<S> Table<S> {
    /// Applies `step` for a caller without a slot, and finds one if there is anything to store.
    /// The caller's stripe must be held.
    // Instantiated for every kind of step: out of line, it would cost 2 % of a first call.
    #[inline(always)]
    pub(super) fn enter<T>(
        &self,
        owner: Owner,
        by: By<'_>,
        groups: &[Group; 2],
        now: Timestamp,
        when_full: WhenFull,
        mut step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        // A change of quota holds every stripe, so the quota does not change here.
        let rules = self.rules();
        let algorithm = if let By::Call(bucket) = by { (*bucket).into() } else { *rules.of(owner) };
        let fresh = algorithm.fresh(self.reclaimed());
        // A panic can only happen here, before a slot is claimed.
        let (answer, word) = step(&algorithm, fresh);
        let Some(word) = word.filter(|word| algorithm.spent(*word, now) > 0) else {
            return Ok(answer);
        };
        if let By::Call(_) = by {
            self.turnover.has_classes.store(true, Ordering::Relaxed);
        }
        loop {
            let Some(candidate) = self.candidate((owner, when_full), groups, &rules, now) else {
                // Every slot is changing hands, which takes only a few instructions.
                yield_now();
                continue;
            };
            let is_kept = match when_full {
                WhenFull::Evict => false,
                // It is of the lowest rank, so all are.
                WhenFull::Protect => candidate.weight >= PROTECTED,
                WhenFull::Deny => candidate.spent > 0,
            };
            if is_kept {
                let after = self.words(groups, &rules).filter_map(|(rule, word)| match when_full {
                    WhenFull::Protect => rule.retry_after(word, now, 1),
                    _ => rule.reset_after(word, now),
                });
                let after = after.min();
                if after == Some(Duration::ZERO) {
                    // A slot has become idle since it was read.
                    continue;
                }
                return Err(Full { algorithm, fresh, after });
            }
            if self.claim(candidate, owner, word, now) {
                return Ok(answer);
            }
        }
    }

    /// Gives a slot to a caller, unless it has changed since it was read.
    fn claim(&self, candidate: Candidate<'_>, owner: Owner, word: Word, now: Timestamp) -> bool {
        let Candidate { line, slot, bits, spent, rule, .. } = candidate;
        if spent == 0 && bits != 0 {
            self.turnover.reclaim(rule.idle_since(Word::from_bits(bits), now));
        }
        let cell = &line.words[slot];
        // Acquire, so that the stores below come after it.
        if cell.compare_exchange(bits, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        if spent > 0 {
            self.turnover.evictions.fetch_add(1, Ordering::Relaxed);
        }
        // Pairs with the load in `attempt` and the fence in `reclaimed`, as does the
        // word: fingerprint first.
        line.fingerprints[slot].store(owner.to_bits(), Ordering::Release);
        cell.store(word.to_bits(), Ordering::Release);
        true
    }

    /// The slot for a new caller: an idle one, or else that of the caller that has spent least.
    /// `None` if every slot is changing hands.
    fn candidate<'a>(
        &'a self,
        newcomer: (Owner, WhenFull),
        [preferred, other]: &[Group; 2],
        rules: &'a Rules,
        now: Timestamp,
    ) -> Option<Candidate<'a>> {
        let (crowd, first) = self.look(newcomer, preferred, rules, now);
        let is_roomy = crowd <= PREFERRED_UP_TO;
        if is_roomy && first.is_some_and(|first| first.is_empty()) {
            return first;
        }
        let (other_crowd, second) = self.look(newcomer, other, rules, now);
        if is_roomy {
            // Prefer an empty slot: an idle caller may come back.
            return second.filter(Candidate::is_empty).or(first);
        }
        let (emptier, fuller) = if other_crowd < crowd { (second, first) } else { (first, second) };
        // The first of equals: an idle slot of the emptier group, if it has one.
        emptier.into_iter().chain(fuller).min_by_key(|candidate| candidate.weight)
    }

    /// How many callers of a group have something spent, and the first slot of the lowest rank.
    fn look<'a>(
        &'a self,
        (owner, when_full): (Owner, WhenFull),
        group: &Group,
        rules: &'a Rules,
        now: Timestamp,
    ) -> (usize, Option<Candidate<'a>>) {
        let mut crowd = 0;
        let mut least: Option<Candidate<'_>> = None;
        for line in group {
            let line = &self.lines[*line];
            for slot in 0..SLOTS_PER_LINE {
                // Only used if `claim` finds it unchanged. Before the owner, as in `attempt`.
                let bits = line.words[slot].load(Ordering::Acquire);
                if bits == CLAIMED {
                    crowd += 1;
                    continue;
                }
                let (mut rule, word) = (&rules.base, Word::from_bits(bits));
                let mut spent = rule.spent(word, now);
                let mut weight = spent;
                if !rules.are_alike {
                    let known = line.owner(slot);
                    rule = rules.of(known);
                    spent = rule.spent(word, now);
                    let is_foreign = spent > 0 && known.is_of_another_class(owner);
                    weight = share(rule, spent) | if is_foreign { FOREIGN } else { 0 };
                }
                if when_full == WhenFull::Protect && spent >= rule.exhausted_from().max(1) {
                    weight |= PROTECTED;
                }
                crowd += usize::from(spent > 0);
                let candidate = Candidate { line, slot, bits, spent, weight, rule };
                if least.is_none_or(|least| candidate.rank() < least.rank()) {
                    least = Some(candidate);
                }
            }
        }
        (crowd, least)
    }

    /// The words of all slots of these groups, with their rules. One that is changing hands reads
    /// as a word that is never idle.
    fn words<'r>(
        &self,
        groups: &[Group; 2],
        rules: &'r Rules,
    ) -> impl Iterator<Item = (&'r AnyAlgorithm, Word)> {
        let lines = groups.as_flattened().iter().map(|line| &self.lines[*line]);
        let slots = lines.flat_map(|line| line.fingerprints.iter().zip(&line.words));
        slots.map(|(owner, word)| {
            let word = Word::from_bits(word.load(Ordering::Acquire));
            (rules.of(Owner::from_bits(owner.load(Ordering::Relaxed))), word)
        })
    }
}
