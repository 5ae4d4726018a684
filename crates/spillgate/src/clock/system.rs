#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]

use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Instant, SystemTime};

use super::Clock;
use crate::Timestamp;
use crate::seq_cell::{Numbers, SeqCell};
use crate::sync::lock_plain;

/// The system's time, read from the processor's time-stamp counter.
///
/// Nanoseconds since the Unix epoch. A reading costs a counter read and a multiplication, about
/// a third of `clock_gettime`. Every 17 ms one thread compares the counter with the operating
/// system's clocks and corrects its rate; concurrent readings wait for it. A counter whose rate
/// changes by more than 3 % is not trusted. Without a reliable counter, every reading reads the
/// operating system's clock.
///
/// # Guarantees
///
/// - **It never jumps.** The rate is that of the operating system's monotonic clock, so setting
///   the time of day does not refill anything.
/// - **It follows the time of day**, since windows begin at whole minutes and at midnight: where
///   the two differ, this clock runs faster or slower by 0.05 %, as time daemons do, until they
///   agree. Correcting one second takes 34 minutes. After a correction of hours, or a suspend of
///   that length, restart the process if windows must be aligned at once.
/// - **Within a thread it is monotonic.** Between threads it may go back by a few microseconds,
///   since two cores read their counters at slightly different moments. That never allows a
///   call that would be denied if time had stopped instead.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        COUNTED.get_or_init(Counted::start).now()
    }
}

static COUNTED: OnceLock<Counted> = OnceLock::new();

/// Prevents comparisons with the operating system's clocks, if there has been a reading.
pub(crate) fn hold_system() -> Option<MutexGuard<'static, Last>> {
    COUNTED.get().map(|counted| lock_plain(&counted.last))
}

/// Time as a straight line from the last comparison with the system's clock.
struct Counted {
    counter: quanta::Clock,
    /// How many ticks one line is valid for.
    serves: u64,
    /// The calibrated rate of the counter.
    calibrated: u64,
    line: SeqCell<3>,
    last: Mutex<Last>,
    /// The system's two clocks at the first reading: the second as nanoseconds since the
    /// epoch.
    began: (Instant, u64),
}

/// The last comparison, and the accumulated correction towards the time of day.
#[derive(Clone, Copy)]
pub(crate) struct Last {
    comparison: Comparison,
    followed: i64,
}

/// One reading of the counter and of the system's clock, as close together as possible.
#[derive(Clone, Copy)]
struct Comparison {
    ticks: u64,
    nanos: u64,
}

/// From `ticks` on, time is `nanos` and advances by `pace / 2³²` nanoseconds per tick.
#[derive(Clone, Copy)]
struct Line {
    ticks: u64,
    nanos: u64,
    pace: u64,
}

/// How many nanoseconds one line is valid for. Rate errors of the order of 10⁻⁵ then stay
/// below one microsecond. A comparison takes some hundred nanoseconds.
const SERVES: u64 = 1 << 24;

/// A rate that differs from the calibrated one by more than this fraction is not trusted: the
/// counter may restart when a machine wakes up.
const BELIEVED: u64 = 32;

/// The correction is at most this fraction of the elapsed time: 0.05 %, as for time daemons.
const FOLLOWED: i64 = 2_000;

impl Counted {
    fn start() -> Self {
        let counter = quanta::Clock::new();
        let began = (Instant::now(), time_of_day());
        let first = Comparison { ticks: counter.raw(), nanos: began.1 };
        let calibrated = counter.delta_as_nanos(0, 1 << 32).max(1);
        // At most 2³¹, so that it can be shifted by 32 bits.
        let serves = ((SERVES << 32) / calibrated).clamp(1, 1 << 31);
        let line = Line::through(first, first.nanos, calibrated, serves).to_numbers();
        let last = Mutex::new(Last { comparison: first, followed: 0 });
        Self { counter, serves, calibrated, line: SeqCell::new(line), last, began }
    }

    #[inline]
    fn now(&self) -> Timestamp {
        loop {
            if let Some(line) = self.line.read(Line::from_numbers) {
                let ticks = self.counter.raw().wrapping_sub(line.ticks);
                if ticks < self.serves {
                    return Timestamp::before_max(line.after(ticks));
                }
                if ticks.wrapping_neg() < self.serves {
                    // This core's counter is behind the one that drew the line.
                    return Timestamp::before_max(line.nanos);
                }
            }
            self.compare();
        }
    }

    /// Draws a new line, unless another thread just has.
    #[cold]
    fn compare(&self) {
        let mut last = lock_plain(&self.last);
        let Some(line) = self.line.read(Line::from_numbers) else {
            return;
        };
        let ticks = self.counter.raw().wrapping_sub(line.ticks);
        if ticks < self.serves || ticks.wrapping_neg() < self.serves {
            return;
        }
        let next = self.comparison(last.followed);
        let pace = next.pace_since(last.comparison, self.calibrated);
        // No reading was later than the end of the old line, so time may
        // continue from there if the line had run ahead.
        let latest = line.after(self.serves);
        let elapsed = next.nanos.saturating_sub(last.comparison.nanos);
        let followed = last.followed + step_towards(time_of_day(), next.nanos, elapsed);
        *last = Last { comparison: next, followed };
        self.line.write(Line::through(next, latest, pace, self.serves).to_numbers());
    }

    /// The tightest of a few readings: an interrupt may come between the two clocks.
    fn comparison(&self, followed: i64) -> Comparison {
        let reading = || {
            let before = self.counter.raw();
            let elapsed = self.began.0.elapsed().as_nanos() as u64;
            let after = self.counter.raw();
            let nanos = (self.began.1 + elapsed).saturating_add_signed(followed);
            let width = after.saturating_sub(before);
            (width, Comparison { ticks: before + width / 2, nanos })
        };
        let best = [reading(), reading(), reading()].into_iter().min_by_key(|(width, _)| *width);
        best.map_or_else(|| reading().1, |(_, comparison)| comparison)
    }
}

impl Comparison {
    /// The rate of the counter since an earlier comparison, if it can be trusted.
    fn pace_since(self, earlier: Self, calibrated: u64) -> u64 {
        let elapsed = u128::from(self.nanos.saturating_sub(earlier.nanos));
        let Some(ticks) = self.ticks.checked_sub(earlier.ticks).filter(|ticks| *ticks > 0) else {
            return calibrated;
        };
        let pace = u64::try_from((elapsed << 32) / u128::from(ticks)).unwrap_or(u64::MAX);
        let is_believed = pace.abs_diff(calibrated) <= calibrated / BELIEVED;
        if is_believed { pace } else { calibrated }
    }
}

/// Nanoseconds since the epoch by the system's clock, bounded so that time can continue from
/// there.
fn time_of_day() -> u64 {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    unix.as_nanos().min(u128::from(Timestamp::MAX.as_nanos() - (1 << 58))) as u64
}

/// The next correction towards the time of day, after some elapsed time.
fn step_towards(time_of_day: u64, now: u64, elapsed: u64) -> i64 {
    let most = (elapsed / FOLLOWED.unsigned_abs()).min(SERVES) as i64;
    let ahead = i128::from(time_of_day) - i128::from(now);
    ahead.clamp(i128::from(-most), i128::from(most)) as i64
}

impl Line {
    /// A line from `comparison` on that never falls below `latest`. If that is
    /// ahead of the system's clock, it runs slower until the two agree.
    fn through(comparison: Comparison, latest: u64, pace: u64, serves: u64) -> Self {
        let serves = (u128::from(serves) * u128::from(pace)) >> 32;
        let ahead = u128::from(latest.saturating_sub(comparison.nanos)).min(serves / 2);
        let slowed = u128::from(pace) * (serves - ahead) / serves.max(1);
        Self { ticks: comparison.ticks, nanos: comparison.nanos.max(latest), pace: slowed as u64 }
    }

    #[inline(always)]
    fn after(self, ticks: u64) -> u64 {
        // Shifted beforehand: the upper half of a product then needs no shift.
        self.nanos + ((u128::from(ticks << 32) * u128::from(self.pace)) >> 64) as u64
    }

    const fn to_numbers(self) -> [u64; 3] {
        [self.ticks, self.nanos, self.pace]
    }

    #[inline(always)]
    fn from_numbers(n: Numbers<'_, 3>) -> Self {
        Self { ticks: n.get(0), nanos: n.get(1), pace: n.get(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of one tick per nanosecond.
    const CALIBRATED: u64 = 1 << 32;
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_counter_that_started_again_does_not_put_time_ahead() {
        let last = Comparison { ticks: 1_000, nanos: 1_700_000_000 * SECOND };
        // An hour later, it has counted a few ticks since it started again.
        for ticks in [1, 999, 1_000, 1_001, 1_000_000] {
            let next = Comparison { ticks, nanos: last.nanos + 3_600 * SECOND };
            let pace = next.pace_since(last, CALIBRATED);
            let line = Line::through(next, next.nanos, pace, SERVES);
            let served = line.after(SERVES) - next.nanos;
            assert!(served <= SERVES + SERVES / 32, "{served} ns in {SERVES} after {ticks} ticks");
            assert!(served >= SERVES - SERVES / 32, "{served} ns in {SERVES} after {ticks} ticks");
        }
    }

    #[test]
    fn a_pace_within_three_percent_is_believed() {
        let last = Comparison { ticks: 0, nanos: 0 };
        for percent in [97, 98, 100, 102, 103] {
            let next = Comparison { ticks: SECOND, nanos: SECOND / 100 * percent };
            assert_eq!(
                next.pace_since(last, CALIBRATED),
                (u128::from(CALIBRATED) * u128::from(percent) / 100) as u64,
                "{percent} %"
            );
        }
        let next = Comparison { ticks: SECOND, nanos: SECOND / 100 * 104 };
        assert_eq!(next.pace_since(last, CALIBRATED), CALIBRATED);
    }

    #[test]
    fn the_time_of_day_is_followed_by_a_two_thousandth_of_what_has_passed() {
        let now = 1_700_000_000 * SECOND;
        let step = |ahead: i64| step_towards(now.saturating_add_signed(ahead), now, SERVES);
        let most = (SERVES / 2_000) as i64;
        assert_eq!(step(0), 0);
        assert_eq!((step(7), step(-7)), (7, -7));
        assert_eq!((step(3_600 * SECOND as i64), step(-3_600 * SECOND as i64)), (most, -most));
        // However long the clock was not read, one step is at most what a line is valid for.
        assert_eq!(step_towards(u64::MAX, now, u64::MAX), SERVES as i64);
    }
}
