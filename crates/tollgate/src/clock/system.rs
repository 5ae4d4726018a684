#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]

use std::sync::{Mutex, OnceLock};
use std::time::{Instant, SystemTime};

use super::Clock;
use crate::Timestamp;
use crate::seq_cell::{Numbers, SeqCell};
use crate::sync::lock_plain;

/// The system's time, read from the processor's time-stamp counter.
///
/// Nanoseconds since the Unix epoch at the process's first reading, and monotonic
/// from there: setting the system clock changes nothing. A reading costs a
/// counter read and a multiplication, about a third of a `clock_gettime`. Every
/// 17 ms one of the callers compares the counter with the operating system's
/// monotonic clock and corrects its pace, so the two stay within about a
/// microsecond of each other for as long as the process runs; who calls in that
/// moment waits for it. Where there is no
/// reliable counter, the operating system's clock is read every time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        static COUNTED: OnceLock<Counted> = OnceLock::new();
        COUNTED.get_or_init(Counted::start).now()
    }
}

/// Time as a straight line through the last comparison with the system's clock.
struct Counted {
    counter: quanta::Clock,
    /// How many ticks one line serves.
    serves: u64,
    line: SeqCell<3>,
    last: Mutex<Comparison>,
    /// The system's two clocks when the process began to read time: the second as
    /// nanoseconds since the epoch.
    began: (Instant, u64),
}

/// One reading of the counter and of the system's clock, as close together as
/// can be.
#[derive(Clone, Copy)]
struct Comparison {
    ticks: u64,
    nanos: u64,
}

/// From `ticks` on, time is `nanos` and advances by `pace / 2³²` nanoseconds a
/// tick.
#[derive(Clone, Copy)]
struct Line {
    ticks: u64,
    nanos: u64,
    pace: u64,
}

/// How many nanoseconds one line serves. Pace errors of the order of 10⁻⁵ then stay
/// below a microsecond, and a comparison costs one caller some hundred nanoseconds.
const SERVES: u64 = 1 << 24;

impl Counted {
    fn start() -> Self {
        let counter = quanta::Clock::new();
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // A system clock that is set later than this is wrong, and would leave no
        // room to count on from there.
        let unix = unix.as_nanos().min(u128::from(Timestamp::MAX.as_nanos() - (1 << 58)));
        let began = (Instant::now(), unix as u64);
        let first = Comparison { ticks: counter.raw(), nanos: began.1 };
        let pace = counter.delta_as_nanos(0, 1 << 32);
        // At most 2³¹, so that it can be shifted by 32 bits.
        let serves = ((SERVES << 32) / pace.max(1)).clamp(1, 1 << 31);
        let line = Line::through(first, first.nanos, pace, serves).to_numbers();
        Self { counter, serves, line: SeqCell::new(line), last: Mutex::new(first), began }
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

    /// Draws a new line, unless another caller just has.
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
        let next = self.comparison();
        let elapsed = u128::from(next.nanos.saturating_sub(last.nanos));
        let pace = match next.ticks.checked_sub(last.ticks) {
            Some(ticks) if ticks > 0 => ((elapsed << 32) / u128::from(ticks)) as u64,
            // The counter has started again, as it may when a machine wakes up.
            _ => line.pace,
        };
        // Nobody was told a time after the end of the old line, so time may
        // continue from there if the line had run ahead.
        let told = line.after(self.serves);
        *last = next;
        self.line.write(Line::through(next, told, pace, self.serves).to_numbers());
    }

    /// The tightest of a few readings: an interrupt may come between the two clocks.
    fn comparison(&self) -> Comparison {
        let reading = || {
            let before = self.counter.raw();
            let elapsed = self.began.0.elapsed().as_nanos() as u64;
            let after = self.counter.raw();
            let nanos = self.began.1 + elapsed;
            let width = after.saturating_sub(before);
            (width, Comparison { ticks: before + width / 2, nanos })
        };
        let best = [reading(), reading(), reading()].into_iter().min_by_key(|(width, _)| *width);
        best.map_or_else(|| reading().1, |(_, comparison)| comparison)
    }
}

impl Line {
    /// A line from `comparison` on that never falls below `told`. If that is
    /// ahead of the system's clock, it runs slower until the two meet.
    fn through(comparison: Comparison, told: u64, pace: u64, serves: u64) -> Self {
        let serves = (u128::from(serves) * u128::from(pace)) >> 32;
        let ahead = u128::from(told.saturating_sub(comparison.nanos)).min(serves / 2);
        let slowed = u128::from(pace) * (serves - ahead) / serves.max(1);
        Self { ticks: comparison.ticks, nanos: comparison.nanos.max(told), pace: slowed as u64 }
    }

    #[inline(always)]
    fn after(self, ticks: u64) -> u64 {
        // Shifted beforehand, since the upper half of a product is to be had without.
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
