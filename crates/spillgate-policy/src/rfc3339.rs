//! Moments as text: `2027-01-01T00:00:00Z` ([RFC 3339]), with a zone.
//!
//! ```
//! use spillgate::Timestamp;
//! use spillgate_policy::rfc3339;
//!
//! let moment = rfc3339::parse("2027-01-01T01:30:00+01:30")?;
//! assert_eq!(moment, Timestamp::from_secs(1_798_761_600));
//! assert_eq!(rfc3339::format(moment), "2027-01-01T00:00:00Z");
//! # Ok::<(), String>(())
//! ```
//!
//! [RFC 3339]: https://www.rfc-editor.org/rfc/rfc3339

use spillgate::Timestamp;
use toml_datetime::{Date, Datetime, Offset};

const EXAMPLE: &str = "write a date, a time and a zone, such as 2027-01-01T00:00:00Z";
const LAST: &str = "is after 2116, when time ends here; leave the expiry out";
const SECONDS_PER_DAY: i64 = 86_400;

/// A moment from its text.
///
/// # Errors
///
/// If the text is no such moment, has no zone, or is after the [last](Timestamp::MAX) one: says
/// what to write. Moments before 1970 are 1970.
pub fn parse(text: &str) -> Result<Timestamp, String> {
    // The parser of TOML also takes parts of a moment, and a space in place of the T.
    let written: Datetime = text.parse().map_err(|_| format!("{text:?} is no time; {EXAMPLE}"))?;
    from_toml(&written)
}

/// A moment from a value of a TOML file.
pub(crate) fn from_toml(written: &Datetime) -> Result<Timestamp, String> {
    let Datetime { date: Some(date), time: Some(time), offset } = written else {
        return Err(format!("{written} is not a whole time; {EXAMPLE}"));
    };
    let minutes_ahead = match offset {
        Some(Offset::Z) => 0,
        Some(Offset::Custom { minutes }) => i64::from(*minutes),
        None => {
            return Err(format!("{written} has no zone; write {written}Z for UTC, or an offset"));
        }
    };
    let minutes = i64::from(time.hour) * 60 + i64::from(time.minute) - minutes_ahead;
    let second = i64::from(time.second.unwrap_or_default());
    let seconds = days_since_epoch(*date) * SECONDS_PER_DAY + minutes * 60 + second;
    let Ok(seconds) = u64::try_from(seconds) else { return Ok(Timestamp::ZERO) };
    let nanos = u64::from(time.nanosecond.unwrap_or_default());
    let all = seconds.checked_mul(1_000_000_000).and_then(|all| all.checked_add(nanos));
    match all.filter(|nanos| *nanos <= Timestamp::MAX.as_nanos()) {
        Some(nanos) => Ok(Timestamp::from_nanos(nanos)),
        None => Err(format!("{written} {LAST}")),
    }
}

/// The text of a moment, in UTC, rounded down to a second.
#[must_use]
pub fn format(moment: Timestamp) -> String {
    let seconds = (moment.as_nanos() / 1_000_000_000) as i64;
    let (days, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days since 1970-01-01 of the Gregorian calendar. Years begin in March here, so that the leap day
/// is the last of a year; 400 of them have 146,097 days.
fn days_since_epoch(date: Date) -> i64 {
    let (month, day) = (i64::from(date.month), i64::from(date.day));
    let year = i64::from(date.year) - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // From 0000-03-01 to 1970-01-01.
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_are_read_in_every_zone() {
        // Seconds by `date -u -d … +%s`.
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2026-11-16T18:41:56Z", 1_794_854_516),
            ("2027-01-01t00:00:00z", 1_798_761_600),
            ("2027-01-01 00:00:00Z", 1_798_761_600),
            ("2027-01-01T05:30:00+05:30", 1_798_761_600),
            ("2026-12-31T16:00:00-08:00", 1_798_761_600),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("2116-02-20T00:00:00Z", 4_611_600_000),
            ("1969-12-31T23:59:59Z", 0),
        ] {
            assert_eq!(parse(text), Ok(Timestamp::from_secs(seconds)), "{text}");
        }
        let half = parse("1970-01-01T00:00:01.5Z").unwrap();
        assert_eq!(half, Timestamp::from_nanos(1_500_000_000));
    }

    #[test]
    fn what_is_no_moment_is_told_with_what_to_write() {
        for (text, expected) in [
            ("tomorrow", "\"tomorrow\" is no time; write a date"),
            ("", "\"\" is no time"),
            ("2027-02-29T00:00:00Z", "is no time"),
            ("2027-01-01", "2027-01-01 is not a whole time; write a date, a time and a zone"),
            ("00:00:00", "00:00:00 is not a whole time"),
            ("2027-01-01T00:00:00", "has no zone; write 2027-01-01T00:00:00Z for UTC"),
            ("9999-12-31T23:59:59Z", "is after 2116"),
            ("2116-02-21T00:00:00Z", "is after 2116"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// Day by day, as a calendar on paper has it.
    #[test]
    fn every_day_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..=53_375 {
            assert_eq!(civil(days), (year, month, day), "{days}");
            let date = Date { year: year as u16, month: month as u8, day: day as u8 };
            assert_eq!(days_since_epoch(date), days, "{date}");
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + i64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
        assert_eq!(year, 2116);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in 0..=Timestamp::MAX.as_nanos() / 1_000_000_000) {
            let moment = Timestamp::from_secs(seconds);
            prop_assert_eq!(parse(&format(moment)), Ok(moment));
        }
    }
}
