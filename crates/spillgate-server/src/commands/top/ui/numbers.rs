//! Numbers, short enough for a column.

/// A count: `1234`, `12.3k`, `4.56M`.
pub(super) fn count(count: u64) -> String {
    if count < 10_000 { count.to_string() } else { scaled(count as f64) }
}

/// A number per second, or another that need not be whole.
pub(in super::super) fn rate(rate: f64) -> String {
    match rate {
        rate if rate < 9.95 && rate.fract() != 0.0 => format!("{rate:.1}"),
        rate if rate < 9999.5 => format!("{rate:.0}"),
        rate => scaled(rate),
    }
}

/// Three digits and a unit.
fn scaled(number: f64) -> String {
    let units = ["", "k", "M", "G", "T", "P", "E"];
    let (mut number, mut unit) = (number, 0);
    while number >= 999.5 && unit + 1 < units.len() {
        (number, unit) = (number / 1000.0, unit + 1);
    }
    let digits = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.digits$}{}", units[unit])
}

/// A time below a minute: `120 ns`, `1.2 ms`, `3.4 s`.
pub(in super::super) fn short_time(seconds: f64) -> String {
    let (number, unit) = match seconds {
        seconds if seconds < 999.5e-9 => (seconds * 1e9, "ns"),
        seconds if seconds < 999.5e-6 => (seconds * 1e6, "µs"),
        seconds if seconds < 999.5e-3 => (seconds * 1e3, "ms"),
        seconds => (seconds, "s"),
    };
    let digits = usize::from(number < 9.95 && unit != "ns");
    format!("{number:.digits$} {unit}")
}

/// A time of two units: `5m 12s`, `3d 4h`.
pub(in super::super) fn long_time(seconds: f64) -> String {
    // Negative and not a number become 0.
    let seconds = seconds as u64;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, ..) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_not_rounded_over_a_unit() {
        let counts = [0, 9999, 10_000, 99_949, 99_960, 999_499, 999_500, 4_560_000, u64::MAX];
        let shown = ["0", "9999", "10.0k", "99.9k", "100k", "999k", "1.00M", "4.56M", "18.4E"];
        assert_eq!(counts.map(count), shown);
        assert_eq!(
            [0.0, 0.25, 3.0, 12.6, 9999.4, 10_000.0].map(rate),
            ["0", "0.2", "3", "13", "9999", "10.0k"]
        );
        let times = [1.2e-7, 1.234e-6, 45e-6, 0.0012, 0.9996, 3.44, 12.0];
        assert_eq!(
            times.map(short_time),
            ["120 ns", "1.2 µs", "45 µs", "1.2 ms", "1.0 s", "3.4 s", "12 s"]
        );
        let times = [-1.0, f64::NAN, 59.9, 60.0, 3600.0, 273_600.0];
        assert_eq!(times.map(long_time), ["0s", "0s", "59s", "1m 0s", "1h 0m", "3d 4h"]);
    }
}
