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
pub(super) struct Held {
    slices: Slices,
    /// Tokens that were neither spent nor given back.
    lost: u64,
}

pub(super) type Slices = SmallVec<[Slice; FEW]>;

const FEW: usize = 4;

impl Held {
    /// Adds a slice and returns its index. If there are too many, the oldest is lost.
    pub(super) fn add(&mut self, bucket: &Bucket, slice: Slice, local: Timestamp) -> usize {
        self.drop_passed(bucket, local);
        let slices = &mut self.slices;
        if slices.len() == FEW {
            self.lost += slices.remove(0).unspent(bucket, local);
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
        self.slices.iter_mut().find_map(|slice| slice.spend(bucket, cost, local))
    }

    /// Spends the cost for which a slice was taken.
    pub(super) fn spend_as_granted(
        &mut self,
        place: usize,
        bucket: &Bucket,
        cost: u64,
    ) -> Option<Decision> {
        self.slices.get_mut(place)?.spend_as_granted(bucket, cost)
    }

    /// The decision of [`spend`](Self::spend), without spending.
    pub(super) fn peek(&self, bucket: &Bucket, cost: u64, local: Timestamp) -> Option<Decision> {
        self.slices.iter().find_map(|slice| slice.peek(bucket, cost, local))
    }

    /// Takes back part of a cost, if it was the last spent of a slice.
    pub(super) fn undo(&mut self, bucket: &Bucket, spent: &SpendRecord, unused: u64) -> bool {
        self.slices.iter_mut().any(|slice| slice.undo(bucket, spent, unused))
    }

    pub(super) fn left(&self, bucket: &Bucket, local: Timestamp) -> u64 {
        self.slices.iter().map(|slice| slice.left(bucket, local)).sum()
    }

    /// True if it is time to take more.
    #[inline]
    pub(super) fn is_half_gone(&self, local: Timestamp) -> bool {
        self.slices.last().is_some_and(|last| last.is_half_gone(local))
    }

    /// Removes the slices that are to be given back.
    pub(super) fn take(
        &mut self,
        bucket: &Bucket,
        local: Timestamp,
        is_due: impl Fn(&Slice) -> bool,
    ) -> Slices {
        self.drop_passed(bucket, local);
        let (due, kept) = self.slices.drain(..).partition(is_due);
        self.slices = kept;
        due
    }

    /// Loses all that is held.
    pub(super) fn lose_all(&mut self, bucket: &Bucket, local: Timestamp) {
        let slices = std::mem::take(&mut self.slices);
        self.lost += slices.iter().map(|slice| slice.unspent(bucket, local)).sum::<u64>();
    }

    /// How many tokens were lost since this was last asked.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Slots that pass while the bucket refills would be lost in Redis as well, unless others have
    /// what lies behind.
    fn drop_passed(&mut self, bucket: &Bucket, local: Timestamp) {
        let lost = &mut self.lost;
        self.slices.retain(|slice| {
            let is_over = slice.is_over(local) || slice.unspent(bucket, local) == 0;
            if is_over && slice.is_kept() {
                *lost += slice.span() / bucket.interval;
            }
            !is_over
        });
    }
}
