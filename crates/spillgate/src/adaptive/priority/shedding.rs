use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::{Priority, PriorityClass};

const LEVELS: usize = Priority::LEVELS as usize;
const CLASSES: usize = PriorityClass::ALL.len();
const RANKS: usize = CLASSES * LEVELS;

/// By how many calls a class above the one that is shed may exceed the limit, if it and those above
/// it ask for clearly less than the capacity. With 60 % of the capacity theirs, they need nine more
/// places than the service has workers if 99 of 100 are to go ahead, however many workers
/// that are (exponential service times: 0.6⁹ = 1 %).
const EXTRA: f64 = 12.0;

/// The same if they ask for all of it. They would fill more places all the time, and everyone's
/// latency would grow with them.
const EXTRA_AT_CAPACITY: f64 = 4.0;

/// What is clearly less, as a share of the capacity.
const CLEARLY_LESS: f64 = 0.75;

/// Decides who is refused first, by what arrived lately.
///
/// Counts arrivals by class and level. From that and the share of them that can be served, a
/// [`step`](Self::step) finds the *cut*: the quantile of arrivals that has to be refused. No
/// lock: counts and cut are atomics, and what a race loses is one arrival in a histogram.
pub(in crate::adaptive) struct Shedding {
    /// Arrivals by rank: those of the last window, and part of what was there before.
    arrivals: Box<[AtomicU32]>,
    cut: AtomicU64,
    /// How much of a call, in 2⁻³², has been refused too little at the cut so far.
    owed: AtomicU32,
}

/// Where a call stands beside the others of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::adaptive) enum Standing {
    /// In a class above the one that is shed. It may exceed the limit by so many calls.
    Above(u8),
    /// Above the cut.
    Within,
    /// Below the cut.
    Below,
}

/// What is refused first: ranks below `rank`, and a share of the calls of that rank itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    rank: u16,
    /// In 2⁻³².
    share: u32,
    /// By how many calls each class but the lowest may exceed the limit, if it is above the cut.
    extra: [u8; CLASSES - 1],
}

impl Shedding {
    pub(in crate::adaptive) fn new() -> Self {
        Self {
            arrivals: (0..RANKS).map(|_| AtomicU32::new(0)).collect(),
            cut: AtomicU64::new(Cut::NONE.pack()),
            owed: AtomicU32::new(0),
        }
    }

    /// Counts an arrival, and says where it stands.
    pub(in crate::adaptive) fn arrive(&self, priority: Priority) -> Standing {
        if let Some(count) = self.arrivals.get(priority.rank()) {
            count.fetch_add(1, Relaxed);
        }
        let cut = self.cut();
        cut.standing(priority, || {
            let owed = self.owed.fetch_add(cut.share, Relaxed);
            owed.checked_add(cut.share).is_none()
        })
    }

    /// What [`arrive`](Self::arrive) would answer. Counts nothing.
    pub(in crate::adaptive) fn peek(&self, priority: Priority) -> Standing {
        let cut = self.cut();
        cut.standing(priority, || self.owed.load(Relaxed).checked_add(cut.share).is_none())
    }

    /// Takes the share of arrivals that the last window could serve, from 0 to 1, and finds who is
    /// refused first in the next. With all served, nobody is.
    pub(in crate::adaptive) fn step(&self, share: f64) {
        let arrivals: Vec<u32> = self.arrivals.iter().map(|count| count.load(Relaxed)).collect();
        self.cut.store(Cut::find(&arrivals, share).pack(), Relaxed);
        // A busy window tells enough by itself, and a mix of calls can change suddenly.
        let keep =
            if arrivals.iter().map(|&count| u64::from(count)).sum::<u64>() < 500 { 2 } else { 8 };
        for (count, seen) in self.arrivals.iter().zip(arrivals) {
            count.fetch_sub(seen - seen / keep, Relaxed);
        }
    }

    fn cut(&self) -> Cut {
        Cut::unpack(self.cut.load(Relaxed))
    }
}

impl Standing {
    /// How many calls may be in flight, with this one, for a call to go ahead: at most `max`, and
    /// above the limit only for those above.
    ///
    /// Those below the cut are refused a little earlier, and not all: the cut is that of the last
    /// window, and a service that has become faster, or lost its other callers, is not left idle.
    pub(in crate::adaptive) fn room(self, limit: u32, max: u32) -> u32 {
        match self {
            Self::Above(extra) => limit.saturating_add(extra.into()).min(max).max(limit),
            Self::Within => limit,
            Self::Below => limit.saturating_sub((limit / 4).max(1)).max(1),
        }
    }
}

impl Cut {
    /// Nobody is refused first.
    const NONE: Self = Self { rank: 0, share: 0, extra: [0; CLASSES - 1] };

    fn find(arrivals: &[u32], share: f64) -> Self {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 };
        let total: f64 = arrivals.iter().map(|&count| f64::from(count)).sum();
        if total == 0.0 {
            return Self::NONE;
        }
        let mut refuse = total * (1.0 - share);
        let mut cut = Self::NONE;
        for (rank, &count) in arrivals.iter().enumerate() {
            let count = f64::from(count);
            if refuse < count {
                cut.rank = rank as u16;
                // From 0 to just below 1; a cast saturates.
                cut.share = (refuse / count * 2f64.powi(32)) as u32;
                break;
            }
            refuse -= count;
            cut.rank = rank as u16 + 1;
        }
        cut.extra = extra_above(arrivals, cut.rank, total * share);
        if share >= 1.0 {
            // Whoever is below all that arrived is refused no more than they are.
            (cut.rank, cut.share) = (0, 0);
        }
        cut
    }

    fn standing(self, priority: Priority, refused_in_turn: impl Fn() -> bool) -> Standing {
        let rank = priority.rank() as u16;
        let extra = (priority.class as usize).checked_sub(1).map_or(0, |class| self.extra[class]);
        if extra > 0 {
            Standing::Above(extra)
        } else if rank < self.rank || rank == self.rank && self.share > 0 && refused_in_turn() {
            Standing::Below
        } else {
            Standing::Within
        }
    }

    /// | bits | |
    /// |---|---|
    /// | 48–63 | extra, four bits per class |
    /// | 32–47 | rank |
    /// | 0–31 | share |
    fn pack(self) -> u64 {
        let extra = self.extra.iter().rev().fold(0, |word, &extra| word << 4 | u64::from(extra));
        extra << 48 | u64::from(self.rank) << 32 | u64::from(self.share)
    }

    fn unpack(word: u64) -> Self {
        let extra = std::array::from_fn(|class| (word >> (48 + 4 * class)) as u8 & 15);
        Self { share: word as u32, rank: (word >> 32) as u16, extra }
    }
}

/// By how many calls each class may exceed the limit. None up to the one of the cut.
fn extra_above(arrivals: &[u32], cut: u16, served: f64) -> [u8; CLASSES - 1] {
    let mut asked = 0.0;
    let mut extras = [0; CLASSES - 1];
    for class in (usize::from(cut) / LEVELS + 1..CLASSES).rev() {
        let levels = arrivals.iter().skip(class * LEVELS).take(LEVELS);
        asked += levels.map(|&count| f64::from(count)).sum::<f64>();
        let beyond = (asked / served - CLEARLY_LESS) / (1.0 - CLEARLY_LESS);
        extras[class - 1] = (EXTRA - beyond.clamp(0.0, 1.0) * (EXTRA - EXTRA_AT_CAPACITY)) as u8;
    }
    extras
}

impl fmt::Debug for Shedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shedding").field("cut", &self.cut()).finish_non_exhaustive()
    }
}
