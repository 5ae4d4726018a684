//! Times as logs write them.

use spillgate::Timestamp;

use super::zone::{Zone, offset};

const SECOND: u64 = 1_000_000_000;

const DAY: i64 = 86_400;

/// A time, and whether it has whole seconds only.
pub(super) type Time = (Timestamp, bool);

/// `17/Nov/2026:04:32:40 +0000`, `17/Nov/2026:04:32:40.123`; without a zone it is in `zone`.
pub(super) fn common(text: &[u8], zone: &Zone) -> Option<Time> {
    let (date, rest) = text.split_at_checked(20)?;
    let [d1, d2, b'/', m1, m2, m3, b'/', y1, y2, y3, y4, b':', clock @ ..] = date else {
        return None;
    };
    let month = month(&[*m1, *m2, *m3])?;
    let days = days(digits(&[*y1, *y2, *y3, *y4])?, month, digits(&[*d1, *d2])?)?;
    let (fraction, rest) = fraction(rest)?;
    let offset = match rest {
        [] => None,
        [b' ', rest @ ..] => Some(offset(rest)?),
        _ => return None,
    };
    moment(days * DAY + seconds(clock)?, offset, zone, fraction)
}

/// `2026-11-17T04:32:40.123Z` and the like: a space for the `T`, an offset for the `Z`, neither.
pub(super) fn iso(text: &[u8], zone: &Zone) -> Option<Time> {
    let (date, rest) = text.split_at_checked(19)?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T' | b't' | b' ', clock @ ..] = date else {
        return None;
    };
    let year = digits(&[*y1, *y2, *y3, *y4])?;
    let days = days(year, digits(&[*m1, *m2])?, digits(&[*d1, *d2])?)?;
    let (fraction, rest) = fraction(rest)?;
    let offset = match rest.trim_ascii_start() {
        [] => None,
        rest => Some(offset(rest)?),
    };
    moment(days * DAY + seconds(clock)?, offset, zone, fraction)
}

/// A number of seconds, milliseconds, microseconds or nanoseconds since 1970, by its magnitude.
pub(super) fn epoch(text: &[u8]) -> Option<Time> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (whole, rest) = text.split_at(point);
    if whole.is_empty() || whole.len() > 19 || !whole.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let whole = whole.iter().fold(0_u64, |all, digit| all * 10 + u64::from(digit - b'0'));
    let unit = match whole {
        0..100_000_000_000 => SECOND,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1000,
        _ => 1,
    };
    let (fraction, rest) = fraction(rest)?;
    let nanos = whole.checked_mul(unit)?;
    let nanos = nanos.checked_add(fraction.unwrap_or(0) / (SECOND / unit))?;
    let is_whole = unit == SECOND && fraction.is_none();
    rest.is_empty().then_some((Timestamp::from_nanos(nanos), is_whole))
}

/// Any of the forms above.
pub(super) fn any(text: &[u8], zone: &Zone) -> Option<Time> {
    iso(text, zone).or_else(|| common(text, zone)).or_else(|| epoch(text))
}

/// The moment of a time that has an offset, or is in a zone.
fn moment(local: i64, offset: Option<i64>, zone: &Zone, fraction: Option<u64>) -> Option<Time> {
    let seconds = offset.map_or_else(|| zone.moment(local), |offset| local - offset);
    let seconds = u64::try_from(seconds).ok()?;
    let nanos = seconds.checked_mul(SECOND)?.checked_add(fraction.unwrap_or(0))?;
    Some((Timestamp::from_nanos(nanos), fraction.is_none()))
}

/// The nanoseconds after a point, if there is one, and what follows.
fn fraction(text: &[u8]) -> Option<(Option<u64>, &[u8])> {
    let [b'.' | b',', rest @ ..] = text else { return Some((None, text)) };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(length);
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    let nanos = padded.fold(0, |all, digit| all * 10 + u64::from(digit - b'0'));
    (length > 0).then_some((Some(nanos), rest))
}

/// `04:32:40`, where 60 is a leap second.
fn seconds(clock: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let (hour, minute) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    let second = digits(&[*s1, *s2])?;
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

pub(super) fn digits(text: &[u8]) -> Option<i64> {
    let all_digits = text.iter().all(u8::is_ascii_digit);
    all_digits.then(|| text.iter().fold(0, |all, digit| all * 10 + i64::from(digit - b'0')))
}

fn month(name: &[u8; 3]) -> Option<i64> {
    let months = b"JanFebMarAprMayJunJulAugSepOctNovDec".as_chunks::<3>().0;
    months.iter().position(|month| month == name).map(|place| place as i64 + 1)
}

/// Days since 1970-01-01. Years begin in March here, so that the leap day is the last of a year.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=12).contains(&month) || !(1..=longest).contains(&day) || year < 1970 {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: u64 = 1_794_889_960;

    fn read(text: &str, zone: &str) -> Option<(u64, bool)> {
        let time = any(text.as_bytes(), &Zone::parse(zone.as_bytes()).unwrap());
        time.map(|(time, is_whole)| (time.as_nanos(), is_whole))
    }

    #[test]
    fn every_form_of_a_time_is_the_same_moment() {
        for text in [
            "17/Nov/2026:04:32:40 +0000",
            "17/Nov/2026:06:02:40 +0130",
            "2026-11-17T04:32:40Z",
            "2026-11-16 23:32:40-05:00",
            "2026-11-17 04:32:40",
            "1794889960",
        ] {
            assert_eq!(read(text, "Z"), Some((MOMENT * SECOND, true)), "{text}");
        }
        for text in [
            "17/Nov/2026:04:32:40.250",
            "2026-11-17T04:32:40.25Z",
            "1794889960.25",
            "1794889960250",
            "1794889960250000.0",
            "1794889960250000000",
        ] {
            assert_eq!(read(text, "Z"), Some((MOMENT * SECOND + 250_000_000, false)), "{text}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_in_the_given_one() {
        for text in ["17/Nov/2026:06:32:40", "2026-11-17T06:32:40"] {
            assert_eq!(read(text, "+02:00"), Some((MOMENT * SECOND, true)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "-",
            "17/Nov/2026",
            "17/Foo/2026:04:32:40 +0000",
            "17/Nov/2026:24:00:00 +0000",
            "31/Nov/2026:04:32:40 +0000",
            "29/Feb/2026:04:32:40 +0000",
            "17/Nov/2026:04:32:40 +99",
            "2026-13-17T04:32:40Z",
            "2026-11-17T04:32:40.Z",
            "1e9",
            "99999999999999999999",
            "-5",
            "1.2.3",
            "0000-00-00T00:00:00Z",
        ] {
            assert_eq!(read(text, "Z"), None, "{text}");
        }
    }
}
