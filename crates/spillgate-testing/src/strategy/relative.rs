use std::time::Duration;

use proptest::prelude::*;

use super::magnitudes;
use crate::Limit;

/// A cost in terms of a limit.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// So much under any limit.
    Plain(u64),
    /// So many 256ths of the burst.
    Share(u8),
    /// The whole burst.
    Burst,
    /// One more than the burst.
    BurstAndOne,
}

/// Costs that a limit makes interesting, and the largest there is.
pub fn sizes() -> impl Strategy<Value = Size> {
    prop_oneof![
        5 => (0..4_u64).prop_map(Size::Plain),
        4 => any::<u8>().prop_map(Size::Share),
        2 => Just(Size::Burst),
        1 => Just(Size::BurstAndOne),
        1 => Just(Size::Plain(u64::MAX)),
    ]
}

impl Size {
    /// The cost under `limit`.
    #[must_use]
    pub fn under(self, limit: &Limit) -> u64 {
        let burst = limit.quota.burst();
        match self {
            Self::Plain(size) => size,
            Self::Share(share) => (u128::from(burst) * u128::from(share) / 256) as u64,
            Self::Burst => burst,
            Self::BurstAndOne => burst + 1,
        }
    }
}

/// A time in terms of a limit: so many units, and a nanosecond more or less.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    unit: Unit,
    count: u64,
    off: i64,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Nanosecond,
    Interval,
    /// So many 256ths of a period as there are units.
    PartOfPeriod,
    Period,
    Year,
}

/// Pauses that a limit makes interesting, from none to as long as there are.
pub fn pauses() -> impl Strategy<Value = Pause> {
    let units = prop_oneof![
        2 => Just(Unit::Nanosecond),
        4 => Just(Unit::Interval),
        2 => Just(Unit::PartOfPeriod),
        3 => Just(Unit::Period),
        1 => Just(Unit::Year),
    ];
    let counts = prop_oneof![3 => Just(0), 4 => 0..4_u64, 1 => 0..256_u64, 1 => magnitudes(40)];
    (units, counts, -1..=1_i64).prop_map(|(unit, count, off)| Pause { unit, count, off })
}

impl Pause {
    /// The time under `limit`.
    #[must_use]
    pub fn under(self, limit: &Limit) -> Duration {
        const YEAR: u128 = 365 * 24 * 3600 * 1_000_000_000;
        let count = u128::from(self.count);
        let nanos = |span: Option<Duration>| span.map_or(1, |span| span.as_nanos());
        let span = match self.unit {
            Unit::Nanosecond => count,
            Unit::Interval => count * nanos(limit.quota.interval()),
            Unit::PartOfPeriod => count * nanos(limit.quota.period()) / 256,
            Unit::Period => count * nanos(limit.quota.period()),
            Unit::Year => count * YEAR,
        };
        let span = span.saturating_add_signed(self.off.into());
        Duration::from_nanos(u64::try_from(span).unwrap_or(u64::MAX))
    }
}
