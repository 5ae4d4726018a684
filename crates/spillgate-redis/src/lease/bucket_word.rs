use std::time::Duration;

use spillgate::algorithm::{Algorithm, Word};
use spillgate::{Decision, Timestamp};

use super::bucket::{Bucket, Pace};
use crate::clock_sample::ClockSample;

/// The last known word of a bucket, and when to ask again.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketWord {
    /// The word after the last take.
    word: Word,
    sample: ClockSample,
    /// Nothing is taken before this Redis time.
    next: Timestamp,
}

/// How long a word is trusted: as long as a remembered denial under a strict limit.
const BELIEVED: Duration = Duration::from_secs(1);

impl BucketWord {
    /// The word after a take that got something. If much less than a batch is left, the next take
    /// waits for a batch. With a share it also waits for the cost of one call, which is not held.
    pub(super) fn left(
        bucket: &Bucket,
        word: Word,
        sample: ClockSample,
        pace: Pace,
        cost: u64,
    ) -> Self {
        let is_enough = bucket.algorithm.remaining(word, sample.now) >= pace.batch - pace.batch / 8;
        let wanted = match pace.is_a_share() {
            true => bucket.within_reach(pace.batch.saturating_add(cost)).max(pace.batch),
            false => pace.batch,
        };
        let at = Timestamp::from_nanos(bucket.has_at(word.to_bits(), wanted));
        Self { word, sample, next: if is_enough { sample.now } else { at } }
    }

    /// The word found by a take that got nothing. The next take waits.
    pub(super) fn found(word: Word, sample: ClockSample, pace: Pace) -> Self {
        Self { word, sample, next: sample.now + pace.gap }
    }

    /// The same, with jitter, so that nodes which wait for one bucket do not keep taking in the
    /// same order: the one after another would get nothing.
    pub(super) fn spread(self, within: Duration) -> Self {
        if self.next <= self.sample.now {
            return self;
        }
        let later = (u128::from(mix(self.word, self.sample.now)) * within.as_nanos()) >> 32;
        Self { next: self.next + Duration::from_nanos(later as u64), ..self }
    }

    /// The denial of a cost, if it is certain that nothing can be taken for it yet. When the word
    /// is too old, one call asks Redis, and meanwhile the others still use it.
    pub(super) fn denial(
        &self,
        bucket: &Bucket,
        cost: u64,
        local: Timestamp,
        is_asking: bool,
    ) -> Option<Decision> {
        let is_believed = is_asking || local.since(self.sample.sent) < BELIEVED;
        let decide = || self.decide(bucket, cost, self.sample.earliest(local));
        is_believed.then(decide).filter(Decision::is_denied)
    }

    /// The decision for a call that got nothing.
    pub(super) fn decide(&self, bucket: &Bucket, cost: u64, now: Timestamp) -> Decision {
        // When this node will have tokens, not when the bucket has.
        let word = bucket.word_at(self.next.as_nanos(), cost).max(self.word.to_bits());
        Decision::of(bucket.algorithm, Word::from_bits(word), now, cost).0
    }

    /// How much can be taken.
    pub(super) fn available(&self, bucket: &Bucket, local: Timestamp) -> u64 {
        let now = self.sample.earliest(local);
        if now < self.next { 0 } else { bucket.algorithm.remaining(self.word, now) }
    }

    /// Distrusts the word, since something was given back to the bucket.
    pub(super) fn unlearn(&mut self) {
        self.word = Word::from_bits(0);
    }
}

/// 32 bits that differ between nodes and over time.
pub(super) fn mix(word: Word, now: Timestamp) -> u64 {
    let mixed = word.to_bits() ^ now.as_nanos().rotate_left(32);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}
