//! Deciding for a caller: find its slot, compute, exchange its word.

use std::time::Duration;

use super::geometry::{Group, Line, SLOTS_PER_LINE};
use super::{CLAIMED, CountedBy, Fingerprint, Owner, Table, WhenFull};
use crate::algorithm::{Algorithm, AnyAlgorithm, TokenBucket, Word};
use crate::sync::{Ordering, back_off, lock};
use crate::{Decision, Timestamp};

/// The rule of a caller's word in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By<'q> {
    /// The table's own rule.
    Base,
    /// The rule of a tier.
    Tier(usize),
    /// A quota that comes with the call.
    Call(&'q TokenBucket),
}

impl By<'_> {
    /// The rule of a tier: zero is the table's own.
    pub(crate) fn of_tier(tier: usize) -> Self {
        tier.checked_sub(1).map_or(By::Base, By::Tier)
    }
}

/// The word that a decision replaced, and the one it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) before: Word,
    pub(crate) after: Word,
}

/// There is no slot for a new caller, whose word would be `fresh`.
#[derive(Debug)]
pub(crate) struct Full {
    pub(super) algorithm: AnyAlgorithm,
    pub(super) fresh: Word,
    /// The time until a slot is available, if ever.
    pub(super) after: Option<Duration>,
}

impl Full {
    #[cold]
    pub(crate) fn decision(self, now: Timestamp, cost: u64) -> Decision {
        Decision::full(self.algorithm, self.fresh, now, cost, self.after)
    }
}

impl<S> Table<S> {
    /// Spends `cost` for a caller at `now`, if it passes.
    #[inline]
    pub fn check_at(&self, caller: Fingerprint, cost: u64, now: Timestamp) -> Decision {
        match self.check_at_home(caller, cost, now) {
            Some(decision) => decision,
            None => self.check_by(caller, By::Base, cost, now),
        }
    }

    /// Decides for a known caller of a token bucket in its first line, where most are: in
    /// registers, without a function call.
    #[inline(always)]
    pub(crate) fn check_at_home(
        &self,
        caller: Fingerprint,
        cost: u64,
        now: Timestamp,
    ) -> Option<Decision> {
        let home = &self.lines[self.geometry.home(caller)];
        let bucket = || self.rule.read(AnyAlgorithm::token_bucket_from_raw)?;
        let spend = |bucket: &TokenBucket, word| Decision::of(*bucket, word, now, cost);
        let owner = Owner::new(caller, By::Base);
        attempt::<false, _, _>(home, home.slot_of(owner)?, owner, bucket, spend)
    }

    /// Decides for any caller of any algorithm.
    #[cold]
    #[inline(never)]
    pub(super) fn check_by(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.decide(caller, by, cost, now, |algorithm, word| {
            Decision::of(*algorithm, word, now, cost)
        })
    }

    /// What [`check_by`](Self::check_by) would decide, given a slot, without spending.
    pub(super) fn peek_by(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.decide(caller, by, cost, now, |algorithm, word| {
            (Decision::peek(*algorithm, word, now, cost), None)
        })
    }

    #[inline]
    fn decide(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        cost: u64,
        now: Timestamp,
        step: impl Fn(&AnyAlgorithm, Word) -> (Decision, Option<Word>),
    ) -> Decision {
        match self.update_here(caller, by, now, self.when_full, step) {
            Ok(decision) => decision,
            Err(full) => full.decision(now, cost),
        }
    }

    /// Replaces a caller's word with the result of `change`.
    pub(super) fn rewrite(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        change: impl Fn(&AnyAlgorithm, Word) -> Word,
    ) {
        let step = |algorithm: &AnyAlgorithm, word| {
            let changed = change(algorithm, word);
            ((), (changed != word).then_some(changed))
        };
        // Evicting never finds the table full.
        let _ = self.update_here(caller, by, now, WhenFull::Evict, step);
    }

    /// Starts loading the memory that a decision about the caller needs. In a batch, prefetch
    /// every caller before deciding about the first: the cache misses then overlap.
    #[inline(always)]
    pub fn prefetch(&self, caller: Fingerprint) {
        self.lines[self.geometry.home(caller)].prefetch();
    }

    /// Applies `step` to a caller's word. The step returns a result, and the word to store, if
    /// any. It is applied again to another word if another call was faster.
    ///
    /// A caller that is not in the table enters it unless its word `is_elsewhere`, which is read
    /// with the caller's stripe held, as [`take_out`](Self::take_out) holds it. Then the step is
    /// applied there, and so it is if the word is that of another tier.
    #[inline]
    pub(crate) fn update<T, F>(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        when_full: WhenFull,
        mut step: F,
        (is_elsewhere, go_there): (impl Fn() -> bool, impl FnOnce(F) -> Result<T, Full>),
    ) -> Result<T, Full>
    where
        F: FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    {
        let owner = Owner::new(caller, by);
        let groups = self.geometry.groups(caller);
        // All of them load in parallel.
        groups.as_flattened().iter().for_each(|line| self.lines[*line].prefetch());
        let cell = self.cell_of(by);
        let rule = || {
            let rule = cell.read(AnyAlgorithm::from_raw)?;
            Some(if let By::Call(bucket) = by { (*bucket).into() } else { rule })
        };
        let mut try_on =
            |(line, slot), owner| attempt::<true, _, _>(line, slot, owner, rule, &mut step);
        loop {
            if let Some(answer) = self.find(owner, &groups).and_then(|place| try_on(place, owner)) {
                return Ok(answer);
            }
            // Under its stripe, a caller that is not found has no slot, and the quota does not
            // change.
            let entering = lock(self.stripe(caller));
            let found = match by == By::Base && self.has_one_rule() {
                true => self.find(owner, &groups).map(|(line, slot)| Found { line, slot, owner }),
                false => self.find_any(caller, &groups),
            };
            let is_there = match &found {
                Some(found) => found.is_in_another_tier(owner),
                None => is_elsewhere(),
            };
            if is_there {
                drop(entering);
                return go_there(step);
            }
            let Some(Found { line, slot, owner: known }) = found else {
                return self.enter(owner, by, &groups, now, when_full, step);
            };
            if known != owner && self.passes(known, owner, (line, slot), now) {
                drop(entering);
                self.pass(caller, (known, owner), now);
                continue;
            }
            if let Some(answer) = try_on((line, slot), known) {
                return Ok(answer);
            }
            // Its slot was taken over just now.
            drop(entering);
        }
    }

    /// The same for a caller whose word cannot be elsewhere. In another tier, it is acted on by the
    /// rule of that.
    #[inline]
    pub(crate) fn update_here<T>(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let in_another_tier = |step| self.update_as_found(caller, by, now, when_full, step);
        self.update(caller, by, now, when_full, step, (|| false, in_another_tier))
    }

    /// The same by the rule that counts the caller's word, whatever that of the call.
    #[cold]
    fn update_as_found<T>(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        when_full: WhenFull,
        mut step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let groups = self.geometry.groups(caller);
        // Under it, no rule changes.
        let _entering = lock(self.stripe(caller));
        let rules = self.rules();
        loop {
            let Some(Found { line, slot, owner }) = self.find_any(caller, &groups) else {
                return self.enter(Owner::new(caller, by), by, &groups, now, when_full, step);
            };
            let rule = || Some(*rules.of(owner));
            if let Some(answer) = attempt::<true, _, _>(line, slot, owner, rule, &mut step) {
                return Ok(answer);
            }
            // Its slot was taken over just now.
        }
    }

    /// Removes a caller from the table and returns its word, if it is there, and its tier: zero
    /// is the table's own. A word that is counted by a quota of a call stays.
    pub(crate) fn take_out(&self, caller: Fingerprint) -> Option<(Word, usize)> {
        // With every stripe held no slot changes hands, so the claimed one is the caller's.
        let _entering = self.hold_stripes();
        let Found { line, slot, owner } = self.find_any(caller, &self.geometry.groups(caller))?;
        let CountedBy::Tier(tier) = owner.counted_by() else { return None };
        line.take_out(slot).map(|(_, word)| (word, tier))
    }

    /// A caller's word in a tier, and that tier.
    pub(crate) fn in_any_tier(&self, caller: Fingerprint) -> Option<(Word, usize)> {
        let found = self.find_any(caller, &self.geometry.groups(caller))?;
        let CountedBy::Tier(tier) = found.owner.counted_by() else { return None };
        found.line.entry(found.slot).map(|(_, word)| (word, tier))
    }

    /// True if the word of a slot is to be counted by the rule of a call from now on: if nothing is
    /// spent, or the burst is smaller, by which the caller has spent the larger share. So nobody
    /// can make a word look less than it is.
    fn passes(&self, known: Owner, call: Owner, place: (&Line, usize), now: Timestamp) -> bool {
        let (rules, (line, slot)) = (self.rules(), place);
        let word = Word::from_bits(line.words[slot].load(Ordering::Acquire));
        let known = rules.of(known);
        known.spent(word, now) == 0 || rules.of(call).whole() < known.whole()
    }

    /// Makes the word of a caller that of a call's rule.
    fn pass(&self, caller: Fingerprint, (known, call): (Owner, Owner), now: Timestamp) {
        // As in `take_out`.
        let _entering = self.hold_stripes();
        // Others may have spent since, or passed it on.
        let found = self.find_any(caller, &self.geometry.groups(caller));
        let known = found.filter(|Found { line, slot, owner }| {
            *owner == known && self.passes(known, call, (line, *slot), now)
        });
        if let Some(Found { line, slot, .. }) = known {
            line.pass(slot, call);
        }
        self.turnover.has_classes.store(true, Ordering::Relaxed);
    }

    /// The slot of a caller, whatever its word is counted by. Without its stripe, it may have
    /// become that of another.
    fn find_any(&self, caller: Fingerprint, groups: &[Group; 2]) -> Option<Found<'_>> {
        let lines = groups.as_flattened().iter().map(|line| &self.lines[*line]);
        let mut slots = lines.flat_map(|line| (0..SLOTS_PER_LINE).map(move |slot| (line, slot)));
        slots.find_map(|(line, slot)| {
            let owner = line.owner(slot);
            let is_ours = !owner.is_nobody()
                && owner.caller() == caller
                && line.words[slot].load(Ordering::Acquire) != CLAIMED;
            is_ours.then_some(Found { line, slot, owner })
        })
    }

    /// The slot of a caller. A slot that is being taken over is not its slot any more.
    #[inline]
    fn find(&self, owner: Owner, groups: &[Group; 2]) -> Option<(&Line, usize)> {
        for line in groups.as_flattened() {
            let line = &self.lines[*line];
            let mut matches = line.matches(owner);
            // More than one if one of them is being taken over and still has the caller's
            // fingerprint.
            while matches != 0 {
                let slot = matches.trailing_zeros() as usize % SLOTS_PER_LINE;
                if line.words[slot].load(Ordering::Acquire) != CLAIMED {
                    return Some((line, slot));
                }
                matches &= matches - 1;
            }
        }
        None
    }
}

/// The slot of a caller.
#[derive(Clone, Copy)]
struct Found<'t> {
    line: &'t Line,
    slot: usize,
    owner: Owner,
}

impl Found<'_> {
    /// True if the word is counted by another tier than that of a call, which cannot act on it.
    /// Under a quota of its own, a call keeps the time that the caller owes.
    fn is_in_another_tier(&self, call: Owner) -> bool {
        let is_by_call = |owner: Owner| matches!(owner.counted_by(), CountedBy::Call(_));
        self.owner != call && !is_by_call(self.owner) && !is_by_call(call)
    }
}

/// Applies `step` to one slot, retrying after lost races; `None` if the slot is not the
/// caller's any more, or if the quota is changing.
///
/// `CAREFUL` detects that the slot has changed hands and received the same word: then another
/// caller has paid, and the step must be repeated. Words of buckets are times, and equal only if
/// both callers spent in the same nanosecond, so the hot path does without (3 % of it).
#[inline(always)]
pub(super) fn attempt<const CAREFUL: bool, A, T>(
    line: &Line,
    slot: usize,
    owner: Owner,
    rule: impl Fn() -> Option<A>,
    mut step: impl FnMut(&A, Word) -> (T, Option<Word>),
) -> Option<T> {
    let (fingerprint, cell) = (&line.fingerprints[slot], &line.words[slot]);
    loop {
        // The word before the fingerprint: a takeover changes the word first, so the exchange
        // below fails for a word that was not ours. Acquire pairs with every release of a word:
        // one of a slot taken over shows the new fingerprint, one carried over to a new quota
        // shows that the quota's change has begun.
        let bits = cell.load(Ordering::Acquire);
        // Acquire keeps the read of the quota below from moving up.
        if bits == CLAIMED || fingerprint.load(Ordering::Acquire) != owner.to_bits() {
            return None;
        }
        let (answer, next) = step(&rule()?, Word::from_bits(bits));
        let unmoved = match next {
            // Release pairs with the acquire above, in the next reader of this word.
            Some(next) => {
                let is_exchanged = cell
                    .compare_exchange(bits, next.to_bits(), Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok();
                // The exchange has acquired the word, so it shows whose it is. If zero, the
                // caller was removed since, with our spend. (An empty slot has another word.) And
                // it is still ours if it is counted by another rule since.
                let whose = if CAREFUL { fingerprint.load(Ordering::Relaxed) } else { 0 };
                // Without a branch: two instructions less.
                is_exchanged & (Owner::from_bits(whose).is_caller_of(owner) | (whose == 0))
            }
            // Nothing is exchanged, so nothing has shown that the word was ours: the slot may
            // have been another caller's when the word was read, and ours again when the
            // fingerprint was. The acquires above keep these loads after both.
            None => {
                cell.load(Ordering::Acquire) == bits
                    && fingerprint.load(Ordering::Relaxed) == owner.to_bits()
            }
        };
        if unmoved {
            return Some(answer);
        }
        back_off();
    }
}

impl Line {
    /// Starts loading the line.
    #[inline(always)]
    fn prefetch(&self) {
        std::hint::black_box(self.fingerprints[0].load(Ordering::Relaxed));
    }

    /// The first slot of a caller, whatever counts its word.
    #[inline(always)]
    pub(super) fn slot_of_caller(&self, owner: Owner) -> Option<usize> {
        let mut matches = 0;
        for slot in 0..SLOTS_PER_LINE {
            // Only a hint, as in `matches`.
            let known = Owner::from_bits(self.fingerprints[slot].load(Ordering::Relaxed));
            matches |= usize::from(known.is_caller_of(owner)) << slot;
        }
        (matches != 0).then(|| matches.trailing_zeros() as usize % SLOTS_PER_LINE)
    }

    /// The first slot of an owner.
    #[inline(always)]
    pub(super) fn slot_of(&self, owner: Owner) -> Option<usize> {
        let matches = self.matches(owner);
        // The remainder changes nothing, but shows the compiler that the slot is
        // inside the line.
        (matches != 0).then(|| matches.trailing_zeros() as usize % SLOTS_PER_LINE)
    }

    /// A bit for each slot of an owner.
    ///
    /// All are compared without a branch: the position of a caller in a line is unpredictable.
    #[inline(always)]
    fn matches(&self, owner: Owner) -> usize {
        let mut matches = 0;
        for slot in 0..SLOTS_PER_LINE {
            // Only a hint: `attempt` reads it again, in order.
            let is_ours = self.fingerprints[slot].load(Ordering::Relaxed) == owner.to_bits();
            matches |= usize::from(is_ours) << slot;
        }
        matches
    }
}
