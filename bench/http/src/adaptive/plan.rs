//! How a service is loaded: little, five times what it can do, and little again.

use std::ops::Range;

use super::load::{Burst, Pace};

/// Of the capacity, before and after.
pub const LITTLE: f64 = 0.5;
/// Of the capacity, in between.
pub const MUCH: f64 = 5.0;

/// Seconds of each part.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub before: u32,
    pub overload: u32,
    pub after: u32,
}

/// Seconds of an overload in which a limit may still look for its place.
const SETTLING: u32 = 5;

impl Plan {
    /// For the picture, which shows every second.
    pub const DRAWN: Self = Self { before: 15, overload: 25, after: 20 };
    pub const SHORT: Self = Self { before: 5, overload: 14, after: 11 };

    pub fn seconds(self) -> u32 {
        self.before + self.overload + self.after
    }

    /// For a service that answers so many requests per second.
    pub fn bursts(self, capacity: f64) -> [Burst; 2] {
        let always =
            Burst { from: 0, seconds: self.seconds(), pace: Pace::Rate(capacity * LITTLE) };
        let more = Pace::Rate(capacity * (MUCH - LITTLE));
        [always, Burst { from: self.before, seconds: self.overload, pace: more }]
    }

    /// The seconds of the overload that are measured.
    pub fn settled(self) -> Range<f64> {
        f64::from(self.before + SETTLING)..f64::from(self.end())
    }

    /// The seconds after the overload.
    pub fn after(self) -> Range<f64> {
        f64::from(self.end())..f64::from(self.seconds())
    }

    /// The second in which the overload ends.
    pub fn end(self) -> u32 {
        self.before + self.overload
    }
}

/// One request after the other, with pauses: what it takes if nobody else asks.
pub fn alone(seconds: u32) -> [Burst; 1] {
    [Burst { from: 0, seconds, pace: Pace::Connections(1, 15.0) }]
}

/// As much as is answered, with few requests at once.
pub fn saturated(seconds: u32) -> [Burst; 1] {
    [Burst { from: 0, seconds, pace: Pace::Connections(3, 0.0) }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overload_is_five_times_the_capacity() {
        let plan = Plan::SHORT;
        let rate = |burst: &Burst| match burst.pace {
            Pace::Rate(rate) => rate,
            Pace::Connections(..) => 0.0,
        };
        let bursts = plan.bursts(200.0);
        assert_eq!(bursts.iter().map(rate).sum::<f64>(), 1000.0);
        assert_eq!(bursts[1].from + bursts[1].seconds, plan.end());
        assert_eq!(bursts[0].seconds, plan.seconds());
        assert!(plan.settled().end - plan.settled().start > 8.0);
    }
}
