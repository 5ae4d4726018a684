//! Entering a caller: choose a slot, and take it over.

use std::time::Duration;

use super::geometry::{Group, Line, PREFERRED_UP_TO, SLOTS_PER_LINE};
use super::update::{By, Full};
use super::{CLAIMED, Fingerprint, Table, WhenFull};
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
}

impl Candidate<'_> {
    fn is_empty(&self) -> bool {
        self.bits == 0
    }

    /// Slots of a lower rank are taken first: empty ones, then those idle longest (times are in
    /// a word's upper bits), then those that have spent least.
    fn rank(self) -> (u64, u64) {
        (self.spent, self.bits)
    }
}

impl<S> Table<S> {
    /// Applies `step` for a caller without a slot, and finds one if there is anything to store.
    /// The caller's stripe must be held.
    // Instantiated for every kind of step: out of line, it would cost 2 % of a first call.
    #[inline(always)]
    pub(super) fn enter<T>(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        groups: &[Group; 2],
        now: Timestamp,
        when_full: WhenFull,
        mut step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        // A change of quota holds every stripe, so the quota does not change here.
        let base = self.algorithm();
        let idle_rule = self.idle_rule_of(base);
        let algorithm = if matches!(by, By::Base) { base } else { self.rule_of(by) };
        let fresh = algorithm.fresh(self.reclaimed());
        // A panic can only happen here, before a slot is claimed.
        let (answer, word) = step(&algorithm, fresh);
        let Some(word) = word.filter(|word| idle_rule.spent(*word, now) > 0) else {
            return Ok(answer);
        };
        loop {
            let Some(candidate) = self.candidate(groups, &idle_rule, now) else {
                // Every slot is changing hands, which takes only a few instructions.
                yield_now();
                continue;
            };
            let is_kept = match when_full {
                WhenFull::Evict => false,
                WhenFull::Protect => candidate.spent >= self.strictest(by).exhausted_from(),
                WhenFull::Deny => candidate.spent > 0,
            };
            if is_kept {
                let after = match when_full {
                    WhenFull::Protect => self.first_not_exhausted(groups, by, now),
                    _ => self.first_idle(groups, &idle_rule, now),
                };
                if after == Some(Duration::ZERO) {
                    // A slot has become idle since it was read.
                    continue;
                }
                return Err(Full { algorithm, fresh, after });
            }
            let idle_since = idle_rule.idle_since(Word::from_bits(candidate.bits), now);
            if self.claim(candidate, caller, word, idle_since) {
                return Ok(answer);
            }
        }
    }

    /// Gives a slot to a caller, unless it has changed since it was read. If it is idle, it has
    /// been so since `idle_since`.
    fn claim(
        &self,
        candidate: Candidate<'_>,
        caller: Fingerprint,
        word: Word,
        idle_since: Timestamp,
    ) -> bool {
        let Candidate { line, slot, bits, spent } = candidate;
        if spent == 0 && bits != 0 {
            self.turnover.reclaim(idle_since);
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
        line.fingerprints[slot].store(caller.to_bits(), Ordering::Release);
        cell.store(word.to_bits(), Ordering::Release);
        true
    }

    /// The slot for a new caller: an idle one, or else that of the caller that has spent least.
    /// `None` if every slot is changing hands.
    fn candidate(
        &self,
        [preferred, other]: &[Group; 2],
        algorithm: &AnyAlgorithm,
        now: Timestamp,
    ) -> Option<Candidate<'_>> {
        let (crowd, first) = self.look(preferred, algorithm, now);
        let is_roomy = crowd <= PREFERRED_UP_TO;
        if is_roomy && first.is_some_and(|first| first.is_empty()) {
            return first;
        }
        let (other_crowd, second) = self.look(other, algorithm, now);
        if is_roomy {
            // Prefer an empty slot: an idle caller may come back.
            return second.filter(Candidate::is_empty).or(first);
        }
        let (emptier, fuller) = if other_crowd < crowd { (second, first) } else { (first, second) };
        // The first of equals: an idle slot of the emptier group, if it has one.
        emptier.into_iter().chain(fuller).min_by_key(|candidate| candidate.spent)
    }

    /// How many callers of a group have something spent, and the first slot of the lowest rank.
    fn look(
        &self,
        group: &Group,
        algorithm: &AnyAlgorithm,
        now: Timestamp,
    ) -> (usize, Option<Candidate<'_>>) {
        let mut crowd = 0;
        let mut least: Option<Candidate<'_>> = None;
        for line in group {
            let line = &self.lines[*line];
            for slot in 0..SLOTS_PER_LINE {
                // Only used if `claim` finds it unchanged.
                let bits = line.words[slot].load(Ordering::Relaxed);
                if bits == CLAIMED {
                    crowd += 1;
                    continue;
                }
                let spent = algorithm.spent(Word::from_bits(bits), now);
                crowd += usize::from(spent > 0);
                let candidate = Candidate { line, slot, bits, spent };
                if least.is_none_or(|least| candidate.rank() < least.rank()) {
                    least = Some(candidate);
                }
            }
        }
        (crowd, least)
    }

    /// The time until one of these slots becomes idle, if ever.
    fn first_idle(
        &self,
        groups: &[Group; 2],
        algorithm: &AnyAlgorithm,
        now: Timestamp,
    ) -> Option<Duration> {
        self.words(groups).filter_map(|word| algorithm.reset_after(word, now)).min()
    }

    /// The time until one of these callers is not exhausted any more, if ever: not zero, since
    /// the one that has spent least was exhausted.
    fn first_not_exhausted(
        &self,
        groups: &[Group; 2],
        by: By<'_>,
        now: Timestamp,
    ) -> Option<Duration> {
        let algorithm = self.strictest(by);
        let after = self.words(groups).filter_map(|word| algorithm.retry_after(word, now, 1)).min();
        after.map(|after| after.max(Duration::from_nanos(1)))
    }

    /// The rule by which a caller is exhausted: that of the tier with the least to spend, since
    /// its tier is unknown.
    fn strictest(&self, by: By<'_>) -> AnyAlgorithm {
        match by {
            By::Call(bucket) => (*bucket).into(),
            _ => self
                .rules()
                .min_by_key(Algorithm::exhausted_from)
                .unwrap_or_else(|| self.algorithm()),
        }
    }

    /// The words of all slots of these groups. One that is changing hands reads as a word that is
    /// never idle.
    fn words(&self, groups: &[Group; 2]) -> impl Iterator<Item = Word> {
        let lines = groups.as_flattened().iter().map(|line| &self.lines[*line]);
        let words = lines.flat_map(|line| &line.words);
        words.map(|word| Word::from_bits(word.load(Ordering::Relaxed)))
    }
}
