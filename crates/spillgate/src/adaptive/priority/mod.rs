//! Who is refused first.

mod shedding;
#[cfg(test)]
mod tests;

pub(super) use self::shedding::{Shedding, Standing};
use crate::Timestamp;

/// How much a call matters, when not all can be served.
///
/// Calls are shed from the lowest class. Inside a class every caller has a level, which changes by
/// the hour: the same callers are shed for a while, and not for ever.
///
/// What is shed follows from what arrived in the last window: as many calls as could not be served,
/// the lowest first. Those are refused a quarter below the limit already. Classes above may exceed
/// the limit by up to 12 calls, if they ask for clearly less than the service can do, and never the
/// maximum: without that a limit of three calls would refuse one in ten of a class that needs 60 %
/// of the service, with nobody else there. While nothing is refused, nothing is shed.
///
/// ```
/// use spillgate::Timestamp;
/// use spillgate::adaptive::{Priority, PriorityClass};
///
/// let now = Timestamp::from_secs(1_700_000_000);
/// let anna = Priority::of_caller(PriorityClass::High, 0x5eed, now);
/// assert_eq!(anna.class(), PriorityClass::High);
/// assert!(anna > Priority::new(PriorityClass::Normal, 99));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority {
    class: PriorityClass,
    level: u8,
}

/// A class of priority, the lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriorityClass {
    /// Nobody waits for it: prefetching, crawlers.
    Sheddable,
    /// It can be repeated later: batches, reports.
    Low,
    /// Anything else.
    #[default]
    Normal,
    /// Somebody waits for it.
    High,
    /// Shed last: payments, health checks.
    Critical,
}

impl PriorityClass {
    /// All classes, the lowest first.
    pub const ALL: [Self; 5] =
        [Self::Sheddable, Self::Low, Self::Normal, Self::High, Self::Critical];

    /// The name, as a policy writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sheddable => "sheddable",
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl Priority {
    /// How many levels a class has.
    pub const LEVELS: u8 = 100;

    /// A class and a level inside it, at most 99.
    #[must_use]
    pub fn new(class: PriorityClass, level: u8) -> Self {
        Self { class, level: level.min(Self::LEVELS - 1) }
    }

    /// A class, and the level that a caller has in this hour, by a hash of who it is.
    ///
    /// Levels of different hours, and those of different callers, have nothing to do with each
    /// other, even if hashes of callers are small numbers.
    #[must_use]
    pub fn of_caller(class: PriorityClass, caller: u64, now: Timestamp) -> Self {
        const HOUR: u64 = 3_600_000_000_000;
        // Mixed one after the other: in a sum, a caller would meet in the next hour what its
        // neighbour met in this one.
        let mixed = mix(mix(now.as_nanos() / HOUR) ^ caller);
        let level = ((mixed >> 32) * u64::from(Self::LEVELS)) >> 32;
        Self::new(class, level as u8)
    }

    /// The class.
    #[must_use]
    pub fn class(self) -> PriorityClass {
        self.class
    }

    /// The level.
    #[must_use]
    pub fn level(self) -> u8 {
        self.level
    }

    /// The place among all levels of all classes, the lowest first.
    fn rank(self) -> usize {
        self.class as usize * usize::from(Self::LEVELS) + usize::from(self.level)
    }
}

/// The finalizer of `SplitMix64`: every bit of the result depends on every bit of the number.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The normal class.
impl Default for Priority {
    fn default() -> Self {
        Self::new(PriorityClass::Normal, Self::LEVELS / 2)
    }
}
