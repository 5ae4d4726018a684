//! Serving a client: find its slot, compute, exchange its word.

use std::time::Duration;

use super::geometry::{Group, Line, SLOTS_A_LINE};
use super::{CLAIMED, Fingerprint, Table, WhenFull};
use crate::algorithm::{AnyAlgorithm, TokenBucket, Word};
use crate::sync::{Ordering, back_off, lock};
use crate::{Decision, Timestamp};

/// What a client's word counts by in one call.
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

/// No slot is to be had for a client never seen, whose word would be `fresh`.
#[derive(Debug)]
pub(crate) struct Full {
    pub(super) algorithm: AnyAlgorithm,
    pub(super) fresh: Word,
    /// The time until the first slot is to be had, if ever.
    pub(super) after: Option<Duration>,
}

impl Full {
    #[cold]
    pub(crate) fn decision(self, now: Timestamp, cost: u64) -> Decision {
        Decision::full(self.algorithm, self.fresh, now, cost, self.after)
    }
}

impl<S> Table<S> {
    /// Spends `cost` for a client at `now`, if it passes.
    #[inline]
    pub fn check_at(&self, client: Fingerprint, cost: u64, now: Timestamp) -> Decision {
        match self.check_at_home(client, cost, now) {
            Some(decision) => decision,
            None => self.check_by(client, By::Base, cost, now),
        }
    }

    /// Decides for a known client of a token bucket that is found where it is
    /// looked for first, as most are: in registers, without a call.
    #[inline(always)]
    pub(crate) fn check_at_home(
        &self,
        client: Fingerprint,
        cost: u64,
        now: Timestamp,
    ) -> Option<Decision> {
        let home = &self.lines[self.geometry.home(client)];
        let bucket = || self.rule.read(AnyAlgorithm::token_bucket_from_raw)?;
        let spend = |bucket: &TokenBucket, word| Decision::of(*bucket, word, now, cost);
        attempt::<false, _, _>(home, home.slot_of(client)?, client, bucket, spend)
    }

    /// Decides for any client of any algorithm.
    #[cold]
    #[inline(never)]
    pub(super) fn check_by(
        &self,
        client: Fingerprint,
        by: By<'_>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.decide(client, by, cost, now, |algorithm, word| {
            Decision::of(*algorithm, word, now, cost)
        })
    }

    /// What [`check_by`](Self::check_by) would answer, given a slot, without spending.
    pub(super) fn peek_by(
        &self,
        client: Fingerprint,
        by: By<'_>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.decide(client, by, cost, now, |algorithm, word| {
            (Decision::peek(*algorithm, word, now, cost), None)
        })
    }

    #[inline]
    fn decide(
        &self,
        client: Fingerprint,
        by: By<'_>,
        cost: u64,
        now: Timestamp,
        step: impl Fn(&AnyAlgorithm, Word) -> (Decision, Option<Word>),
    ) -> Decision {
        match self.update_here(client, by, now, self.when_full, step) {
            Ok(decision) => decision,
            Err(full) => full.decision(now, cost),
        }
    }

    /// Replaces a client's word by what `change` makes of it.
    pub(super) fn rewrite(
        &self,
        client: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        change: impl Fn(&AnyAlgorithm, Word) -> Word,
    ) {
        let step = |algorithm: &AnyAlgorithm, word| {
            let changed = change(algorithm, word);
            ((), (changed != word).then_some(changed))
        };
        // Evicting never finds the table full.
        let _ = self.update_here(client, by, now, WhenFull::Evict, step);
    }

    /// Begins to load what a decision about the client will need, without waiting for
    /// it. In a batch, touch every client before deciding about the first: the waits
    /// for memory then overlap.
    #[inline(always)]
    pub fn touch(&self, client: Fingerprint) {
        self.lines[self.geometry.home(client)].touch();
    }

    /// Takes `step` on a client's word. The step tells its answer, and the word to put in place
    /// of the one it was given, if any. It is taken again for another word if somebody else was
    /// faster.
    ///
    /// A client that is not in the table enters it unless its word `is_elsewhere`: that is
    /// asked with the client's stripe held, as [`take_out`](Self::take_out) holds it. Then the
    /// step is taken there.
    #[inline]
    pub(crate) fn update<T, F>(
        &self,
        client: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        when_full: WhenFull,
        mut step: F,
        (is_elsewhere, go_there): (impl Fn() -> bool, impl FnOnce(F) -> Result<T, Full>),
    ) -> Result<T, Full>
    where
        F: FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    {
        let groups = self.geometry.groups(client);
        // All of them begin to load, rather than one after the other.
        groups.as_flattened().iter().for_each(|line| self.lines[*line].touch());
        let cell = self.cell_of(by);
        let rule = || {
            let rule = cell.read(AnyAlgorithm::from_raw)?;
            Some(if let By::Call(bucket) = by { (*bucket).into() } else { rule })
        };
        let mut try_on = |(line, slot)| attempt::<true, _, _>(line, slot, client, rule, &mut step);
        loop {
            if let Some(answer) = self.find(client, &groups).and_then(&mut try_on) {
                return Ok(answer);
            }
            // Under its stripe, a client that is not found is known to be nowhere,
            // and the quota does not change.
            let entering = lock(self.stripe(client));
            match self.find(client, &groups) {
                None if is_elsewhere() => {
                    drop(entering);
                    return go_there(step);
                }
                None => {
                    return self.enter(client, by, &groups, now, when_full, step);
                }
                Some(slot) => {
                    if let Some(answer) = try_on(slot) {
                        return Ok(answer);
                    }
                }
            }
            // It was stolen from us just now.
            drop(entering);
        }
    }

    /// The same for a client whose word can be nowhere else.
    #[inline]
    pub(crate) fn update_here<T>(
        &self,
        client: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let nowhere = |_| unreachable!("its word is nowhere else");
        self.update(client, by, now, when_full, step, (|| false, nowhere))
    }

    /// Takes a client out of the table with its word, if it is there. Whoever looks for it
    /// afterwards finds it nowhere.
    pub(crate) fn take_out(&self, client: Fingerprint) -> Option<Word> {
        // With every stripe held no slot changes hands, so what is claimed is the client's own.
        let _entering = self.hold_stripes();
        let (line, slot) = self.find(client, &self.geometry.groups(client))?;
        // Orderings and their reasons as in `claim`.
        let bits = line.words[slot].swap(CLAIMED, Ordering::AcqRel);
        line.fingerprints[slot].store(0, Ordering::Release);
        line.words[slot].store(0, Ordering::Release);
        Some(Word::from_bits(bits))
    }

    /// The slot of a client, wherever it is. A slot that is being stolen from it
    /// is not its slot any more.
    #[inline]
    fn find(&self, client: Fingerprint, groups: &[Group; 2]) -> Option<(&Line, usize)> {
        for line in groups.as_flattened() {
            let line = &self.lines[*line];
            let mut matches = line.matches(client);
            // More than one if one of them is being stolen, and has the client's
            // fingerprint still.
            while matches != 0 {
                let slot = matches.trailing_zeros() as usize % SLOTS_A_LINE;
                if line.words[slot].load(Ordering::Acquire) != CLAIMED {
                    return Some((line, slot));
                }
                matches &= matches - 1;
            }
        }
        None
    }
}

/// Takes `step` on one slot, however often other callers get there first; `None` if
/// the slot is not the client's any more, or if the quota is changing.
///
/// `CAREFUL` notices if the slot has changed hands and was given the very same word meanwhile:
/// then a stranger was charged, and we have yet to be. Words of buckets are times, the same only
/// if both clients spent in the same nanosecond, so the short way does without (3 % of it).
#[inline(always)]
pub(super) fn attempt<const CAREFUL: bool, A, T>(
    line: &Line,
    slot: usize,
    client: Fingerprint,
    rule: impl Fn() -> Option<A>,
    mut step: impl FnMut(&A, Word) -> (T, Option<Word>),
) -> Option<T> {
    let (fingerprint, cell) = (&line.fingerprints[slot], &line.words[slot]);
    loop {
        // The word before the fingerprint: whoever steals the slot changes the word
        // first, so the exchange below fails for a word that was not ours. Acquire
        // pairs with every release of a word: one of a stolen slot shows the new
        // fingerprint, one carried over to a new quota shows that the quota's change
        // has begun.
        let bits = cell.load(Ordering::Acquire);
        // Acquire keeps the reading of the quota below from moving up.
        if bits == CLAIMED || fingerprint.load(Ordering::Acquire) != client.to_bits() {
            return None;
        }
        let (answer, next) = step(&rule()?, Word::from_bits(bits));
        let unmoved = match next {
            // Release pairs with the acquire above, in whoever reads this word.
            Some(next) => {
                let is_exchanged = cell
                    .compare_exchange(bits, next.to_bits(), Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok();
                // The exchange has acquired the word, so it shows whose it is. Nobody's: it was
                // taken out since, with our charge. (An empty slot has another word.)
                let whose = if CAREFUL { fingerprint.load(Ordering::Relaxed) } else { 0 };
                // Without a branch: two instructions less.
                is_exchanged & ((whose == client.to_bits()) | (whose == 0))
            }
            // Nothing is exchanged, so nothing has shown that the word was ours: the
            // slot may have been a stranger's when the word was read, and ours again
            // when the fingerprint was. The acquires above keep these loads after
            // both.
            None => {
                cell.load(Ordering::Acquire) == bits
                    && fingerprint.load(Ordering::Relaxed) == client.to_bits()
            }
        };
        if unmoved {
            return Some(answer);
        }
        back_off();
    }
}

impl Line {
    /// Begins to load the line, without waiting for it.
    #[inline(always)]
    fn touch(&self) {
        std::hint::black_box(self.fingerprints[0].load(Ordering::Relaxed));
    }

    /// The first slot with the client's fingerprint.
    #[inline(always)]
    pub(super) fn slot_of(&self, client: Fingerprint) -> Option<usize> {
        let matches = self.matches(client);
        // The remainder changes nothing, but shows the compiler that the slot is
        // inside the line.
        (matches != 0).then(|| matches.trailing_zeros() as usize % SLOTS_A_LINE)
    }

    /// A bit for each slot with the client's fingerprint.
    ///
    /// All are compared, without a branch for each: where in a line a client is
    /// cannot be predicted.
    #[inline(always)]
    fn matches(&self, client: Fingerprint) -> usize {
        let mut matches = 0;
        for slot in 0..SLOTS_A_LINE {
            // Only a hint: `attempt` reads it again, in order.
            let is_ours = self.fingerprints[slot].load(Ordering::Relaxed) == client.to_bits();
            matches |= usize::from(is_ours) << slot;
        }
        matches
    }
}
