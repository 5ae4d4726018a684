use std::time::Duration;

use spillgate::algorithm::{Algorithm, SpendRecord, Word};
use spillgate::{Decision, Timestamp};

use super::Taken;
use super::bucket::Bucket;
use crate::backend::{self, Exchange};
use crate::clock_sample::ClockSample;
use crate::{Name, State, Terms};

/// Slots of a bucket that belong to this node: see the [proof](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The start of the first unspent slot.
    at: u64,
    /// The end of the last slot: the word after the take.
    end: u64,
    /// The start of the second half.
    half: u64,
    /// The last take: the slice can be spent for [`LIVES`] from then on.
    pub(super) sample: ClockSample,
    /// True if Redis did not take it back: others have what lies behind.
    is_kept: bool,
}

/// How long slots can be spent after they were taken.
///
/// While they can, they may have been exchanged for [earlier ones](super#giving-back).
pub(super) const LIVES: Duration = Duration::from_secs(1);

/// From then on they are given back, since what is given back later is less.
const OLD: Duration = Duration::from_millis(750);

impl Slice {
    /// The result of a take of as many times `least` as available, up to `most`.
    pub(super) fn of(bucket: &Bucket, taken: &Taken, least: u64, most: u64) -> Option<Self> {
        let now = taken.sample.now;
        let tokens = backend::taken(&bucket.algorithm, taken.word, now, least, most);
        let end = bucket.algorithm.spend(taken.word, now, tokens)?.to_bits();
        let at = end - bucket.span(tokens);
        Some(Self { at, end, half: at.midpoint(end), sample: taken.sample, is_kept: false })
    }

    /// Spends a cost if there are slots for it that have not passed.
    #[inline]
    pub(super) fn spend(
        &mut self,
        bucket: &Bucket,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        self.spend_at(bucket, cost, self.sample.latest(local))
    }

    /// Spends the cost of the call that the slice was taken for, at the time of the take: nothing
    /// has melted on the way.
    pub(super) fn spend_as_granted(&mut self, bucket: &Bucket, cost: u64) -> Option<Decision> {
        self.spend_at(bucket, cost, self.sample.now)
    }

    #[inline]
    fn spend_at(&mut self, bucket: &Bucket, cost: u64, now: Timestamp) -> Option<Decision> {
        if now > self.until() {
            return None;
        }
        // To the library the slice is a bucket whose word is `at`. It lies within the burst, so it
        // ends before that bucket does.
        let (decision, left) = Decision::of(bucket.algorithm, Word::from_bits(self.at), now, cost);
        let at = left.map_or(self.at, Word::to_bits);
        if decision.is_denied() || at > self.end {
            return None;
        }
        self.at = at;
        Some(decision)
    }

    /// The decision of [`spend`](Self::spend), without spending.
    pub(super) fn peek(&self, bucket: &Bucket, cost: u64, local: Timestamp) -> Option<Decision> {
        let (mut rest, now) = (*self, self.sample.latest(local));
        let passes = rest.spend_at(bucket, cost, now).is_some();
        passes.then(|| Decision::peek(bucket.algorithm, Word::from_bits(self.at), now, cost))
    }

    /// Takes back part of a cost, if it was the last spent. Returns whether it was.
    pub(super) fn undo(&mut self, bucket: &Bucket, spent: &SpendRecord, unused: u64) -> bool {
        // Slots of another tier may end at the same time, but differ in length.
        let is_last = self.at == spent.word.to_bits() && bucket.algorithm == spent.algorithm;
        if is_last {
            self.at = self.at.saturating_sub(bucket.span(unused.min(spent.cost)));
        }
        is_last
    }

    /// True if another slice lies behind this one.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.end <= other.at
    }

    /// How many slots can be spent.
    pub(super) fn left(&self, bucket: &Bucket, local: Timestamp) -> u64 {
        if self.sample.latest(local) > self.until() { 0 } else { self.unspent(bucket, local) }
    }

    /// How many slots have neither been spent nor passed.
    pub(super) fn unspent(&self, bucket: &Bucket, local: Timestamp) -> u64 {
        self.end.saturating_sub(self.next(local)) / bucket.interval
    }

    /// How long all slots are together that were not spent, passed or not.
    pub(super) fn span(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// True if less than half is left.
    #[inline]
    pub(super) fn is_half_gone(&self, local: Timestamp) -> bool {
        self.next(local) > self.half
    }

    /// True if it is time to give it back, whoever calls.
    pub(super) fn is_old(&self, local: Timestamp) -> bool {
        self.sample.latest(local) > self.sample.now + OLD
    }

    /// True if it can neither be spent nor given back any more.
    pub(super) fn is_over(&self, local: Timestamp) -> bool {
        self.is_kept && self.sample.latest(local) > self.until()
    }

    /// True if Redis did not take it back.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Merges a slice that begins where this one ends, or returns it.
    pub(super) fn join(&mut self, later: Self) -> Result<(), Self> {
        if later.at != self.end {
            return Err(later);
        }
        let at = self.next(later.sample.sent);
        *self = Self { at: self.at, half: at.midpoint(later.end), ..later };
        Ok(())
    }

    /// The exchange that gives the unspent slots back if they are the last ones. If anything was
    /// taken or spent since, it fails: a lower word would hand out the slots of others.
    pub(super) fn give_back(&self, name: Name, terms: Terms, margin: Duration) -> Exchange {
        let state = |word| Some(State::new(terms, Word::from_bits(word)));
        // Redis time has advanced since the sample, so this is not too short.
        let busy = Duration::from_nanos(self.at.saturating_sub(self.sample.now.as_nanos()));
        Exchange {
            name,
            old: state(self.end),
            new: state(self.at),
            expires: (!terms.is_override).then(|| busy + margin),
        }
    }

    /// Takes out what can be exchanged for the end of a bucket that was seen at this time of Redis,
    /// in nanoseconds: what begins when nobody can spend any more what is held now. Whole slots
    /// before are kept. See the [proof](super#giving-back).
    pub(super) fn take_late(&mut self, bucket: &Bucket, seen: Timestamp) -> u64 {
        let first = self.at.min(self.until().as_nanos());
        let all = self.end.saturating_sub(self.at);
        let early = (seen + LIVES).as_nanos().saturating_sub(first).min(all);
        let end = self.at + early - early % bucket.interval;
        *self = Self { end, half: self.at, is_kept: true, ..*self };
        all - early
    }

    /// When it can no longer be spent, by the clock of Redis.
    fn until(&self) -> Timestamp {
        self.sample.now + LIVES
    }

    /// The word after the take.
    pub(super) fn word(&self) -> Word {
        Word::from_bits(self.end)
    }

    /// How far ahead of Redis time the slice began.
    pub(super) fn lead(&self) -> Duration {
        Duration::from_nanos(self.at.saturating_sub(self.sample.now.as_nanos()))
    }

    /// The start of the next slot that can be spent.
    #[inline]
    fn next(&self, local: Timestamp) -> u64 {
        self.at.max(self.sample.latest(local).as_nanos())
    }
}
