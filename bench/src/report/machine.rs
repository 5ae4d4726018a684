//! Where and when, and with which versions.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use super::facts;

/// The crates that a result depends on.
const CRATES: [&str; 8] = [
    "spillgate",
    "governor",
    "dashmap",
    "quota",
    "ratelimit",
    "throttlecrab",
    "leaky-bucket",
    "quanta",
];

/// As a Markdown list.
pub fn describe() -> String {
    let mut list = String::new();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (cpu, kernel, load) = (facts::processor(), facts::kernel(), facts::load());
    let _ = writeln!(list, "- command: `scripts/bench {}`", args.join(" "));
    let _ = writeln!(list, "- processor: {cpu}, {threads} hardware threads");
    let _ = writeln!(list, "- kernel: {kernel}");
    let _ = writeln!(list, "- load before the run: {load}");
    let _ = writeln!(list, "- compiler: {}", facts::compiler());
    let _ =
        write!(list, "- crates: {}", facts::versions(include_str!("../../../Cargo.lock"), &CRATES));
    list
}

/// The time in UTC, as `2030-12-31T23:59`.
pub fn now() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let minutes = since_epoch.as_secs() / 60;
    let (year, month, day) = civil(minutes / (24 * 60));
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}")
}

/// The date so many days after 1 January 1970.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }
}
