//! Serving a client: find its slot, compute, exchange its word.

use super::geometry::{Group, Line, SLOTS_A_LINE};
use super::{CLAIMED, Fingerprint, Table, WhenFull};
use crate::algorithm::{AnyAlgorithm, TokenBucket, Word};
use crate::sync::{Ordering, back_off, lock};
use crate::{Decision, Timestamp};

/// The word that a decision replaced, and the one it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) before: Word,
    pub(crate) after: Word,
}

/// No slot is idle for a client never seen, whose word would be `fresh`.
#[derive(Debug)]
pub(super) struct Full {
    pub(super) algorithm: AnyAlgorithm,
    pub(super) fresh: Word,
    /// When the first slot falls idle, if ever.
    pub(super) until: Option<Timestamp>,
}

impl Full {
    #[cold]
    pub(super) fn decision(self, now: Timestamp, cost: u64) -> Decision {
        Decision::full(self.algorithm, self.fresh, now, cost, self.until)
    }
}

impl<S> Table<S> {
    /// Spends `cost` for a client at `now`, if it passes.
    #[inline]
    pub fn check_at(&self, client: Fingerprint, cost: u64, now: Timestamp) -> Decision {
        match self.check_at_home(client, cost, now) {
            Some(decision) => decision,
            None => self.check_anywhere(client, cost, now),
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
        attempt(home, home.slot_of(client)?, client, bucket, spend)
    }

    /// Decides for any client of any algorithm.
    pub(crate) fn check_anywhere(
        &self,
        client: Fingerprint,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let spend = |algorithm: &AnyAlgorithm, word| Decision::of(*algorithm, word, now, cost);
        let decided = self.update(client, now, self.when_full, &spend);
        decided.unwrap_or_else(|full| full.decision(now, cost))
    }

    /// Spends `cost` if it passes, under a quota of the caller's own if there is one, and
    /// tells what was written.
    pub(crate) fn decide(
        &self,
        client: Fingerprint,
        own: Option<TokenBucket>,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Written) {
        let spend = |algorithm: &AnyAlgorithm, before: Word| {
            let (decision, next) = Decision::of(by(algorithm, own), before, now, cost);
            ((decision, Written { before, after: next.unwrap_or(before) }), next)
        };
        self.update(client, now, self.when_full, &spend).unwrap_or_else(|full| {
            let nothing = Written { before: full.fresh, after: full.fresh };
            let algorithm = by(&full.algorithm, own);
            (Full { algorithm, ..full }.decision(now, cost), nothing)
        })
    }

    /// Replaces a client's word by what `change` makes of it.
    pub(super) fn rewrite(
        &self,
        client: Fingerprint,
        now: Timestamp,
        change: impl Fn(&AnyAlgorithm, Word) -> Word,
    ) {
        let step = |algorithm: &AnyAlgorithm, word| {
            let changed = change(algorithm, word);
            ((), (changed != word).then_some(changed))
        };
        // Evicting never finds the table full.
        let _ = self.update(client, now, WhenFull::Evict, &step);
    }

    /// Puts `before` back if a client's word is still `after`.
    ///
    /// If it is not, the charge stays: taking it back later could hand out a token
    /// that refill has already replaced.
    pub(crate) fn undo(&self, client: Fingerprint, written: Written) -> bool {
        // With every stripe held no slot changes hands, so the word is ours and
        // not a stranger's that looks alike.
        let _entering = self.hold_stripes();
        let groups = self.geometry.groups(client);
        let Some((line, slot)) = self.find(client, &groups) else {
            return false;
        };
        let (before, after) = (written.before.to_bits(), written.after.to_bits());
        // Release as in `attempt`.
        let cell = &line.words[slot];
        cell.compare_exchange(after, before, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Begins to load what a decision about the client will need, without waiting for
    /// it. In a batch, touch every client before deciding about the first: the waits
    /// for memory then overlap.
    #[inline(always)]
    pub fn touch(&self, client: Fingerprint) {
        self.lines[self.geometry.home(client)].touch();
    }

    /// Takes `step` on a client's word. The step tells its answer and the word to
    /// put in place of the one it was given, if any.
    pub(super) fn update<T>(
        &self,
        client: Fingerprint,
        now: Timestamp,
        when_full: WhenFull,
        step: &impl Fn(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let groups = self.geometry.groups(client);
        // All of them begin to load, rather than one after the other.
        groups.as_flattened().iter().for_each(|line| self.lines[*line].touch());
        let try_on = |(line, slot)| attempt(line, slot, client, || self.rule(), step);
        loop {
            if let Some(answer) = self.find(client, &groups).and_then(try_on) {
                return Ok(answer);
            }
            // Under its stripe, a client that is not found is known to be nowhere,
            // and the quota does not change.
            let entering = lock(self.stripe(client));
            match self.find(client, &groups) {
                None => return self.enter(client, &groups, now, when_full, step),
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

/// What a word counts by: the quota of the caller's own, if there is one.
pub(super) fn by(algorithm: &AnyAlgorithm, own: Option<TokenBucket>) -> AnyAlgorithm {
    own.map_or(*algorithm, AnyAlgorithm::from)
}

/// Takes `step` on one slot, however often other callers get there first; `None` if
/// the slot is not the client's any more, or if the quota is changing.
#[inline(always)]
pub(super) fn attempt<A, T>(
    line: &Line,
    slot: usize,
    client: Fingerprint,
    rule: impl Fn() -> Option<A>,
    step: impl Fn(&A, Word) -> (T, Option<Word>),
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
            // If the slot was stolen and given the very same word since, the stranger
            // is charged. That admits nothing: our own word was forgotten when the
            // slot was stolen.
            // Release pairs with the acquire above, in whoever reads this word.
            Some(next) => cell
                .compare_exchange(bits, next.to_bits(), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok(),
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
