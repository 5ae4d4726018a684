//! Which slots a client may live in.

use super::Fingerprint;
use crate::Error;
use crate::hasher::scramble;
use crate::sync::AtomicU64;

// Loom explores every interleaving, so it gets the smallest table that still has a
// slot to fight over and a slot to flee to.
#[cfg(not(spillgate_loom))]
mod size {
    pub(in crate::table) const SLOTS_A_LINE: usize = 4;
    pub(super) const LINES_A_GROUP: usize = 3;
    /// Up to this capacity memory is no concern, and a table has twice the room: nearly
    /// all clients are in the line looked at first, and not three in four.
    pub(super) const SMALL: usize = 4096;
}
#[cfg(spillgate_loom)]
mod size {
    pub(in crate::table) const SLOTS_A_LINE: usize = 2;
    pub(super) const LINES_A_GROUP: usize = 1;
    pub(super) const SMALL: usize = 0;
}
pub(super) use size::SLOTS_A_LINE;
use size::{LINES_A_GROUP, SMALL};

/// The share of slots that are taken at full capacity, in percent. Simulated
/// under steady churn with groups of twelve: no live client evicted in 6·10⁶
/// first calls at 62 %, 3·10⁻⁷ of them at 65 %, 2·10⁻⁵ at 70 %.
const LOAD: u64 = 62;

const SMALL_LOAD: u64 = LOAD / 2;

/// The largest capacity: some 110 GB.
const MOST: usize = u32::MAX as usize;

/// A group is preferred to the other while it has at most this many clients, so
/// that most clients are found in the line looked at first (1.6 lines a hit in
/// the same simulation; 2.3 if the emptier group always got the client).
pub(super) const PREFERRED_UP_TO: usize = LINES_A_GROUP * SLOTS_A_LINE * 3 / 4;

/// Four slots in one cache line, fingerprints and words each side by side.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Line {
    pub(super) fingerprints: [AtomicU64; SLOTS_A_LINE],
    pub(super) words: [AtomicU64; SLOTS_A_LINE],
}

/// How many groups of lines there are.
///
/// A fingerprint names two groups and, in each, the line to look at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    groups: usize,
}

/// The lines of one group, in the order in which a client looks at them.
pub(super) type Group = [usize; LINES_A_GROUP];

impl Geometry {
    pub(super) fn for_capacity(capacity: usize) -> Result<Self, Error> {
        if capacity == 0 {
            return Err(Error::capacity(
                "a table of capacity 0 could not know anyone; use the number of clients \
                 expected at once",
            ));
        }
        if capacity > MOST {
            return Err(Error::capacity(format!(
                "a capacity of {capacity} clients is too large; use at most {MOST}"
            )));
        }
        // In 64 bits, also where a `usize` has fewer.
        let slots = |capacity: usize, load| (capacity as u64 * 100).div_ceil(load);
        // Never fewer than a smaller table has.
        let slots = slots(capacity, LOAD).max(slots(capacity.min(SMALL), SMALL_LOAD));
        let groups = slots.div_ceil((SLOTS_A_LINE * LINES_A_GROUP) as u64);
        Ok(Self { groups: groups as usize })
    }

    /// Empty lines for every group.
    pub(super) fn lines(self) -> Result<Box<[Line]>, Error> {
        let count = self.groups * LINES_A_GROUP;
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

    /// The line where most clients are found: the first of their preferred group.
    #[inline(always)]
    pub(super) fn home(self, client: Fingerprint) -> usize {
        let bits = spread(client);
        self.group(bits) * LINES_A_GROUP + first_line(bits)
    }

    /// The two groups, the preferred one first. They may be one and the same.
    #[inline]
    pub(super) fn groups(self, client: Fingerprint) -> [Group; 2] {
        let bits = spread(client);
        [self.group(bits), self.group(scramble(client.0))].map(|group| {
            std::array::from_fn(|step| {
                group * LINES_A_GROUP + (first_line(bits) + step) % LINES_A_GROUP
            })
        })
    }

    /// Multiply and shift maps the upper bits to any number of groups evenly.
    #[inline(always)]
    fn group(self, bits: u64) -> usize {
        ((u128::from(bits) * self.groups as u128) >> 64) as usize
    }
}

/// Bits to place a client by, the upper ones better than the lower. A universal
/// hash may be linear in its keys; placing by it directly would let regular keys
/// crowd a few groups.
#[inline(always)]
fn spread(client: Fingerprint) -> u64 {
    (client.0 ^ client.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Where in its groups a client looks first, by bits that the choice between up
/// to a million groups leaves unused.
#[inline(always)]
fn first_line(bits: u64) -> usize {
    ((bits >> 32 & 0xfff) as usize * LINES_A_GROUP) >> 12
}
