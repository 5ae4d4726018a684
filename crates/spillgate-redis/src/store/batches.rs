use std::ops::Range;

use smallvec::SmallVec;

use super::pending::PendingSpend;
use crate::backend::Backend;

/// Which spends run in one script call.
#[derive(Default)]
pub(super) struct Batches {
    /// Those that must pass, one batch after the other.
    pub(super) enforced: Ranges,
    /// Those in shadow mode, which follow.
    pub(super) shadow: Ranges,
}

type Ranges = SmallVec<[Range<usize>; 4]>;

impl Batches {
    /// Groups spends by slot and sorts them. Limits shared by most callers come last: they deny most
    /// often, and what was spent before them is hardest to take back.
    pub(super) fn order<B: Backend>(pending: &mut [PendingSpend], backend: &B) -> Self {
        let all = pending.len();
        let enforcing = pending.partition_point(|pending| !pending.is_shadow);
        if all > 1 {
            let slots: SmallVec<[u16; 4]> =
                pending.iter().map(|pending| backend.slot(&pending.caller.name)).collect();
            let last_slot = slots[..enforcing].last();
            for (index, pending) in pending.iter_mut().enumerate() {
                let is_same = |slot: &u16| *slot == slots[index];
                // Shadow spends may join the last enforced batch, which settles the call.
                let joins = !pending.is_shadow || last_slot.is_some_and(is_same);
                pending.batch = if joins {
                    slots[..enforcing].iter().rposition(is_same).unwrap_or(index)
                } else {
                    all + slots.iter().position(is_same).unwrap_or(index)
                };
            }
            // Stable: within a batch the enforced ones come first.
            pending.sort_by_key(|pending| pending.batch);
        }
        let mut batches = Self { enforced: Ranges::new(), shadow: Ranges::new() };
        let mut start = 0;
        for batch in pending.chunk_by(|one, next| one.batch == next.batch) {
            let range = start..start + batch.len();
            start = range.end;
            let enforces = batch.first().is_some_and(|pending| !pending.is_shadow);
            if enforces { &mut batches.enforced } else { &mut batches.shadow }.push(range);
        }
        batches
    }

    /// Makes an enforced batch one of each of its spends, since its slot is being moved.
    pub(super) fn scatter(&mut self, place: usize, pending: &[PendingSpend]) {
        let batch = self.enforced.remove(place);
        let is_enforced = |pending: &PendingSpend| !pending.is_shadow;
        let shadow = batch.start + pending[batch.clone()].partition_point(is_enforced);
        self.enforced.insert_many(place, singles(batch.start..shadow));
        self.shadow.insert_many(0, singles(shadow..batch.end));
    }

    /// The same for a batch in shadow mode.
    pub(super) fn scatter_shadow(&mut self, place: usize) {
        let batch = self.shadow.remove(place);
        self.shadow.insert_many(place, singles(batch));
    }
}

fn singles(batch: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    batch.map(|index| index..index + 1)
}
