//! Which slots a caller can be in.

use super::Fingerprint;
use crate::Error;
use crate::hasher::scramble;
use crate::sync::AtomicU64;

// Loom explores every interleaving, so it gets the smallest table that still has a
// slot to fight over and a slot to flee to.
#[cfg(not(spillgate_loom))]
mod size {
    pub(in crate::table) const SLOTS_PER_LINE: usize = 4;
    pub(super) const LINES_PER_GROUP: usize = 3;
    /// Up to this capacity memory does not matter, and a table has twice the slots: nearly all
    /// callers are in their first line, instead of three in four.
    pub(super) const SMALL: usize = 4096;
}
#[cfg(spillgate_loom)]
mod size {
    pub(in crate::table) const SLOTS_PER_LINE: usize = 2;
    pub(super) const LINES_PER_GROUP: usize = 1;
    pub(super) const SMALL: usize = 0;
}
pub(super) use size::SLOTS_PER_LINE;
use size::{LINES_PER_GROUP, SMALL};

/// The share of slots that are taken at full capacity, in percent. Simulated
/// under steady churn with groups of twelve: no live caller evicted in 6·10⁶
/// first calls at 62 %, 3·10⁻⁷ of them at 65 %, 2·10⁻⁵ at 70 %.
const LOAD: u64 = 62;

const SMALL_LOAD: u64 = LOAD / 2;

/// The largest capacity: about 110 GB.
const MOST: usize = u32::MAX as usize;

/// A group is preferred while it has at most this many callers, so that most callers are in
/// their first line (1.6 lines per hit in the same simulation; 2.3 if the emptier group always
/// got the caller).
pub(super) const PREFERRED_UP_TO: usize = LINES_PER_GROUP * SLOTS_PER_LINE * 3 / 4;

/// Four slots in one cache line, fingerprints and words each side by side.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Line {
    pub(super) fingerprints: [AtomicU64; SLOTS_PER_LINE],
    pub(super) words: [AtomicU64; SLOTS_PER_LINE],
}

/// How many groups of lines there are.
///
/// A fingerprint selects two groups and, in each, the first line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    groups: usize,
}

/// The lines of one group, in a caller's order.
pub(super) type Group = [usize; LINES_PER_GROUP];

impl Geometry {
    pub(super) fn for_capacity(capacity: usize) -> Result<Self, Error> {
        if capacity == 0 {
            return Err(Error::capacity(
                "capacity 0 leaves no room for any caller; use the number of callers expected \
                 to be active at the same time",
            ));
        }
        if capacity > MOST {
            return Err(Error::capacity(format!(
                "a capacity of {capacity} callers is too large; use at most {MOST}"
            )));
        }
        // In 64 bits, also where a `usize` has fewer.
        let slots = |capacity: usize, load| (capacity as u64 * 100).div_ceil(load);
        // Never fewer than a smaller table has.
        let slots = slots(capacity, LOAD).max(slots(capacity.min(SMALL), SMALL_LOAD));
        let groups = slots.div_ceil((SLOTS_PER_LINE * LINES_PER_GROUP) as u64);
        Ok(Self { groups: groups as usize })
    }

    /// Empty lines for every group.
    pub(super) fn lines(self) -> Result<Box<[Line]>, Error> {
        let count = self.groups * LINES_PER_GROUP;
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).map_err(|_| {
            Error::capacity(format!(
                "no memory for a table of {} MiB; use a smaller capacity",
                count * size_of::<Line>() / (1024 * 1024),
            ))
        })?;
        lines.resize_with(count, Line::default);
        Ok(lines.into_boxed_slice())
    }

    /// The first line of the preferred group, where most callers are.
    #[inline(always)]
    pub(super) fn home(self, caller: Fingerprint) -> usize {
        let bits = spread(caller);
        self.group(bits) * LINES_PER_GROUP + first_line(bits)
    }

    /// The two groups, the preferred one first. They may be one and the same.
    #[inline]
    pub(super) fn groups(self, caller: Fingerprint) -> [Group; 2] {
        let bits = spread(caller);
        [self.group(bits), self.group(scramble(caller.0))].map(|group| {
            std::array::from_fn(|step| {
                group * LINES_PER_GROUP + (first_line(bits) + step) % LINES_PER_GROUP
            })
        })
    }

    /// Multiply and shift maps the upper bits to any number of groups evenly.
    #[inline(always)]
    fn group(self, bits: u64) -> usize {
        ((u128::from(bits) * self.groups as u128) >> 64) as usize
    }
}

/// Bits that select the groups, the upper ones better than the lower. A universal hash may be
/// linear in its keys; used directly, regular keys would crowd a few groups.
#[inline(always)]
fn spread(caller: Fingerprint) -> u64 {
    (caller.0 ^ caller.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The first line within a group, by bits that the choice between up to a million groups leaves
/// unused.
#[inline(always)]
fn first_line(bits: u64) -> usize {
    ((bits >> 32 & 0xfff) as usize * LINES_PER_GROUP) >> 12
}
