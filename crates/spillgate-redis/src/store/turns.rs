use std::ops::Range;

use smallvec::SmallVec;

use super::ask::Asked;
use crate::engine::Engine;

/// Which charges are put to the engine together.
pub(super) struct Turns {
    /// Those that have to pass, one after the other.
    pub(super) enforced: Ranges,
    /// Those in shadow, which come afterwards.
    pub(super) shadow: Ranges,
}

type Ranges = SmallVec<[Range<usize>; 4]>;

impl Turns {
    /// Puts charges into the order in which they are asked for: those of one slot together,
    /// and where limits that most callers share are, last. There a call is most likely
    /// denied, and what is spent before is hardest to take back.
    pub(super) fn order<E: Engine>(asked: &mut [Asked], engine: &E) -> Self {
        let all = asked.len();
        let enforcing = asked.partition_point(|asked| !asked.is_shadow);
        if all > 1 {
            let slots: SmallVec<[u16; 4]> =
                asked.iter().map(|asked| engine.slot(&asked.caller.name)).collect();
            let last_slot = slots[..enforcing].last();
            for (index, asked) in asked.iter_mut().enumerate() {
                let is_here = |slot: &u16| *slot == slots[index];
                // Those in shadow go along with the last that enforce, which settle the matter.
                let goes_along = !asked.is_shadow || last_slot.is_some_and(is_here);
                asked.turn = if goes_along {
                    slots[..enforcing].iter().rposition(is_here).unwrap_or(index)
                } else {
                    all + slots.iter().position(is_here).unwrap_or(index)
                };
            }
            // Stable: within a turn those that enforce come first.
            asked.sort_by_key(|asked| asked.turn);
        }
        let mut turns = Self { enforced: Ranges::new(), shadow: Ranges::new() };
        let mut start = 0;
        for together in asked.chunk_by(|one, next| one.turn == next.turn) {
            let range = start..start + together.len();
            start = range.end;
            let enforces = together.first().is_some_and(|asked| !asked.is_shadow);
            if enforces { &mut turns.enforced } else { &mut turns.shadow }.push(range);
        }
        turns
    }
}
