use smallvec::SmallVec;
use spillgate::algorithm::SpendRecord;
use spillgate::{Decision, Timestamp};

use super::bucket::Bucket;
use super::slice::Slice;

/// The slices that this node holds of one bucket, in the order of their slots.
///
/// Adjacent slices are merged. They are not adjacent if another node has spent in between. A few
/// are kept, since one that is too small for one call may suffice for another.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(SmallVec<[Slice; FEW]>);

const FEW: usize = 4;

impl Held {
    /// Adds a slice and returns its index. If there are too many, the oldest is lost.
    pub(super) fn add(&mut self, slice: Slice) -> usize {
        let slices = &mut self.0;
        slices.retain(|held| !held.has_passed(slice.sample));
        if slices.len() == FEW {
            slices.remove(0);
        }
        let place = slices.iter().position(|held| slice.is_before(held)).unwrap_or(slices.len());
        let before = place.checked_sub(1).filter(|before| slices[*before].join(slice).is_ok());
        before.unwrap_or_else(|| {
            slices.insert(place, slice);
            place
        })
    }

    /// Spends a cost out of one slice, the oldest first.
    #[inline]
    pub(super) fn spend(
        &mut self,
        bucket: &Bucket,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        self.0.iter_mut().find_map(|slice| slice.spend(bucket, cost, local))
    }

    /// Spends the cost for which a slice was taken.
    pub(super) fn spend_as_granted(
        &mut self,
        place: usize,
        bucket: &Bucket,
        cost: u64,
    ) -> Option<Decision> {
        self.0.get_mut(place)?.spend_as_granted(bucket, cost)
    }

    /// The decision of [`spend`](Self::spend), without spending.
    pub(super) fn peek(&self, bucket: &Bucket, cost: u64, local: Timestamp) -> Option<Decision> {
        self.0.iter().find_map(|slice| slice.peek(bucket, cost, local))
    }

    /// Takes back part of a cost, if it was the last spent of a slice.
    pub(super) fn undo(&mut self, bucket: &Bucket, spent: &SpendRecord, unused: u64) -> bool {
        self.0.iter_mut().any(|slice| slice.undo(bucket, spent, unused))
    }

    pub(super) fn left(&self, bucket: &Bucket, local: Timestamp) -> u64 {
        self.0.iter().map(|slice| slice.left(bucket, local)).sum()
    }

    /// True if it is time to take more.
    #[inline]
    pub(super) fn is_half_gone(&self, local: Timestamp) -> bool {
        self.0.last().is_some_and(|last| last.is_half_gone(local))
    }

    /// Removes the last slice with anything left: only that one ends at the bucket's word, and can
    /// be given back.
    pub(super) fn take_last(&mut self, bucket: &Bucket, local: Timestamp) -> Option<Slice> {
        self.0.retain(|slice| slice.left(bucket, local) > 0);
        self.0.pop()
    }
}
