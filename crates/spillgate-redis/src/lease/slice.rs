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
    pub(super) sample: ClockSample,
}

impl Slice {
    /// The result of a take of as many times `least` as available, up to `most`.
    pub(super) fn of(bucket: &Bucket, taken: &Taken, least: u64, most: u64) -> Option<Self> {
        let now = taken.sample.now;
        let tokens = backend::taken(&bucket.algorithm, taken.word, now, least, most);
        let end = bucket.algorithm.spend(taken.word, now, tokens)?.to_bits();
        let at = end - bucket.span(tokens);
        Some(Self { at, end, half: at.midpoint(end), sample: taken.sample })
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

    /// True if all of it was spent, or had passed by this sample.
    pub(super) fn has_passed(&self, sample: ClockSample) -> bool {
        self.at >= self.end || self.end <= sample.now.as_nanos()
    }

    /// True if another slice lies behind this one.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.end <= other.at
    }

    /// How many slots have neither been spent nor passed.
    pub(super) fn left(&self, bucket: &Bucket, local: Timestamp) -> u64 {
        self.end.saturating_sub(self.next(local)) / bucket.interval
    }

    /// True if less than half is left.
    #[inline]
    pub(super) fn is_half_gone(&self, local: Timestamp) -> bool {
        self.next(local) > self.half
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

    /// The exchange that gives the unspent slots back. It consumes the slice, so they are given
    /// back at most once.
    ///
    /// If anything was taken or spent since, the exchange fails: a lower word would hand out the
    /// slots of others. Then they are still this node's.
    pub(super) fn give_back(self, name: Name, terms: Terms, margin: Duration) -> Option<Exchange> {
        let state = |word| Some(State::new(terms, Word::from_bits(word)));
        // Redis time has advanced since the sample, so this is not too short.
        let busy = Duration::from_nanos(self.at.saturating_sub(self.sample.now.as_nanos()));
        (self.at < self.end).then(|| Exchange {
            name,
            old: state(self.end),
            new: state(self.at),
            keeps_base: true,
            expires: (!terms.is_override).then(|| busy + margin),
        })
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
