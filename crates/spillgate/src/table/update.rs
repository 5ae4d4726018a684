//! Deciding for a caller: find its slot, compute, exchange its word.

use std::time::Duration;

use super::geometry::{Group, Line, SLOTS_PER_LINE};
use super::{CLAIMED, Fingerprint, Table, WhenFull};
use crate::algorithm::{AnyAlgorithm, TokenBucket, Word};
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
        attempt::<false, _, _>(home, home.slot_of(caller)?, caller, bucket, spend)
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
    /// applied there.
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
        let groups = self.geometry.groups(caller);
        // All of them load in parallel.
        groups.as_flattened().iter().for_each(|line| self.lines[*line].prefetch());
        let cell = self.cell_of(by);
        let rule = || {
            let rule = cell.read(AnyAlgorithm::from_raw)?;
            Some(if let By::Call(bucket) = by { (*bucket).into() } else { rule })
        };
        let mut try_on = |(line, slot)| attempt::<true, _, _>(line, slot, caller, rule, &mut step);
        loop {
            if let Some(answer) = self.find(caller, &groups).and_then(&mut try_on) {
                return Ok(answer);
            }
            // Under its stripe, a caller that is not found has no slot, and the quota does not
            // change.
            let entering = lock(self.stripe(caller));
            match self.find(caller, &groups) {
                None if is_elsewhere() => {
                    drop(entering);
                    return go_there(step);
                }
                None => {
                    return self.enter(caller, by, &groups, now, when_full, step);
                }
                Some(slot) => {
                    if let Some(answer) = try_on(slot) {
                        return Ok(answer);
                    }
                }
            }
            // Its slot was taken over just now.
            drop(entering);
        }
    }

    /// The same for a caller whose word cannot be elsewhere.
    #[inline]
    pub(crate) fn update_here<T>(
        &self,
        caller: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let nowhere = |_| unreachable!("its word is nowhere else");
        self.update(caller, by, now, when_full, step, (|| false, nowhere))
    }

    /// Removes a caller from the table and returns its word, if it is there.
    pub(crate) fn take_out(&self, caller: Fingerprint) -> Option<Word> {
        // With every stripe held no slot changes hands, so the claimed one is the caller's.
        let _entering = self.hold_stripes();
        let (line, slot) = self.find(caller, &self.geometry.groups(caller))?;
        // Orderings and their reasons as in `claim`.
        let bits = line.words[slot].swap(CLAIMED, Ordering::AcqRel);
        line.fingerprints[slot].store(0, Ordering::Release);
        line.words[slot].store(0, Ordering::Release);
        Some(Word::from_bits(bits))
    }

    /// The slot of a caller. A slot that is being taken over is not its slot any more.
    #[inline]
    fn find(&self, caller: Fingerprint, groups: &[Group; 2]) -> Option<(&Line, usize)> {
        for line in groups.as_flattened() {
            let line = &self.lines[*line];
            let mut matches = line.matches(caller);
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
    caller: Fingerprint,
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
        if bits == CLAIMED || fingerprint.load(Ordering::Acquire) != caller.to_bits() {
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
                // caller was removed since, with our spend. (An empty slot has another word.)
                let whose = if CAREFUL { fingerprint.load(Ordering::Relaxed) } else { 0 };
                // Without a branch: two instructions less.
                is_exchanged & ((whose == caller.to_bits()) | (whose == 0))
            }
            // Nothing is exchanged, so nothing has shown that the word was ours: the slot may
            // have been another caller's when the word was read, and ours again when the
            // fingerprint was. The acquires above keep these loads after both.
            None => {
                cell.load(Ordering::Acquire) == bits
                    && fingerprint.load(Ordering::Relaxed) == caller.to_bits()
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

    /// The first slot with the caller's fingerprint.
    #[inline(always)]
    pub(super) fn slot_of(&self, caller: Fingerprint) -> Option<usize> {
        let matches = self.matches(caller);
        // The remainder changes nothing, but shows the compiler that the slot is
        // inside the line.
        (matches != 0).then(|| matches.trailing_zeros() as usize % SLOTS_PER_LINE)
    }

    /// A bit for each slot with the caller's fingerprint.
    ///
    /// All are compared without a branch: the position of a caller in a line is unpredictable.
    #[inline(always)]
    fn matches(&self, caller: Fingerprint) -> usize {
        let mut matches = 0;
        for slot in 0..SLOTS_PER_LINE {
            // Only a hint: `attempt` reads it again, in order.
            let is_ours = self.fingerprints[slot].load(Ordering::Relaxed) == caller.to_bits();
            matches |= usize::from(is_ours) << slot;
        }
        matches
    }
}
