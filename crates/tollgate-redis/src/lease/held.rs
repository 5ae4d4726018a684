use tollgate::algorithm::Charged;
use tollgate::{Decision, Timestamp};

use super::bucket::Bucket;
use super::slice::Slice;

/// What this node holds of one caller's bucket: a slice, and perhaps one from before it.
///
/// Slices that follow one another in the bucket become one. They do not if another node has
/// spent in between.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    older: Option<Slice>,
    newer: Option<Slice>,
}

impl Held {
    /// Adds a slice. Of three, the oldest is lost.
    pub(super) fn add(&mut self, slice: Slice) {
        let alone = self.newer.as_mut().map_or(Err(slice), |newer| newer.join(slice));
        if let Err(slice) = alone {
            self.older = self.newer.replace(slice);
        }
    }

    /// Spends a cost out of one slice, the older first.
    #[inline]
    pub(super) fn spend(
        &mut self,
        bucket: &Bucket,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        let spend = |slice: &mut Option<Slice>| slice.as_mut()?.spend(bucket, cost, local);
        spend(&mut self.older).or_else(|| spend(&mut self.newer))
    }

    /// Spends the cost for which the last slice was taken.
    pub(super) fn spend_as_granted(&mut self, bucket: &Bucket, cost: u64) -> Option<Decision> {
        self.newer.as_mut()?.spend_as_granted(bucket, cost)
    }

    /// What [`spend`](Self::spend) would answer, without spending.
    pub(super) fn peek(&self, bucket: &Bucket, cost: u64, local: Timestamp) -> Option<Decision> {
        self.slices().find_map(|slice| slice.peek(bucket, cost, local))
    }

    /// Takes back a cost, if it is the last that was spent of a slice.
    pub(super) fn undo(&mut self, bucket: &Bucket, spent: &Charged) -> bool {
        let mut slices = self.older.iter_mut().chain(self.newer.as_mut());
        slices.any(|slice| slice.undo(bucket, spent))
    }

    /// How much can still be spent.
    pub(super) fn left(&self, bucket: &Bucket, local: Timestamp) -> u64 {
        self.slices().map(|slice| slice.left(bucket, local)).sum()
    }

    /// True if it is time to take more.
    #[inline]
    pub(super) fn is_half_gone(&self, local: Timestamp) -> bool {
        self.newer.is_some_and(|newer| newer.is_half_gone(local))
    }

    /// Lets go of everything, and gives what can be given back: the last slice, as those
    /// before it are no longer at the end of the bucket's line.
    pub(super) fn take_last(&mut self) -> Option<Slice> {
        std::mem::take(self).newer
    }

    fn slices(&self) -> impl Iterator<Item = &Slice> {
        self.older.iter().chain(&self.newer)
    }
}
