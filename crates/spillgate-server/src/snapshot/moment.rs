use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use spillgate::{Clock, Timestamp};

/// One moment on several clocks, so that another process can tell how long ago it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The clock of the counters. It may drift from the wall clock.
    pub clock: Timestamp,
    /// The wall clock, since the Unix epoch.
    pub wall: Duration,
    /// The time since boot, if it is known.
    pub boot: Option<Boot>,
}

/// The time since boot, sleep included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boot {
    /// The boot ID.
    pub id: u128,
    /// The time since.
    pub time: Duration,
}

impl Moment {
    /// This moment. The clock is read first, so that time between the readings refills nothing.
    pub fn now(clock: &impl Clock) -> Self {
        let clock = clock.now();
        Self { clock, wall: duration(clock_gettime(ClockId::Realtime)), boot: Boot::now() }
    }

    /// The time from this moment to a later one: by the boot clock within one boot, else by the
    /// wall clock. If that was set back, no time has passed.
    pub fn until(&self, later: &Self) -> Duration {
        match (self.boot, later.boot) {
            (Some(then), Some(now)) if then.id == now.id => now.time.saturating_sub(then.time),
            _ => later.wall.saturating_sub(self.wall),
        }
    }
}

impl Boot {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn now() -> Option<Self> {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let id = u128::from_str_radix(&id.trim().replace('-', ""), 16).ok()?;
        Some(Self { id, time: duration(clock_gettime(ClockId::Boottime)) })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn now() -> Option<Self> {
        None
    }
}

fn duration(time: Timespec) -> Duration {
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use spillgate::SystemClock;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn moment(wall: u32, boot: Option<(u128, u32)>) -> Moment {
        let boot = boot.map(|(id, hours)| Boot { id, time: HOUR * hours });
        Moment { clock: Timestamp::ZERO, wall: HOUR * wall, boot }
    }

    #[test]
    fn within_one_start_a_wall_clock_that_was_set_does_not_count() {
        let saved = moment(1000, Some((7, 50)));
        for wall in [0, 999, 1001, 5000] {
            assert_eq!(saved.until(&moment(wall, Some((7, 51)))), HOUR, "{wall}");
        }
    }

    #[test]
    fn across_starts_the_wall_clock_counts_and_never_backwards() {
        let saved = moment(1000, Some((7, 50)));
        for (later, passed) in [
            (moment(1002, Some((8, 1))), 2 * HOUR),
            (moment(1002, None), 2 * HOUR),
            (moment(400, Some((8, 60))), Duration::ZERO),
            (moment(0, None), Duration::ZERO),
        ] {
            assert_eq!(saved.until(&later), passed, "{later:?}");
        }
        assert_eq!(moment(1000, None).until(&moment(1001, Some((8, 1)))), HOUR);
    }

    #[test]
    fn within_one_start_time_never_goes_back() {
        // As it would in a container that has been given another offset.
        assert_eq!(moment(5, Some((7, 50))).until(&moment(9, Some((7, 40)))), Duration::ZERO);
    }

    #[test]
    fn this_machine_knows_when_it_was_started() {
        let (first, second) = (Moment::now(&SystemClock), Moment::now(&SystemClock));
        let (first_boot, second_boot) = (first.boot.unwrap(), second.boot.unwrap());
        assert_eq!(first_boot.id, second_boot.id);
        assert!(first_boot.time <= second_boot.time);
        assert!(first.until(&second) < HOUR);
    }
}
