//! Zones of times that do not name one.

use std::sync::Arc;

use tz::TimeZone;

use super::time::digits;

/// The zone of times that have none: an offset from UTC, or a place, whose offset changes twice a
/// year.
#[derive(Clone, Debug)]
pub struct Zone(Offset);

#[derive(Clone, Debug)]
enum Offset {
    /// In seconds.
    Fixed(i64),
    Place(Arc<TimeZone>),
}

const DAY: i64 = 86_400;

impl Default for Zone {
    fn default() -> Self {
        Self(Offset::Fixed(0))
    }
}

impl Zone {
    /// A zone from `Z`, `+02:00`, `+0200` or `-05`, or from the name of a place, such as
    /// `Europe/Berlin`, if this machine knows it.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if let Some(offset) = offset(text) {
            return Some(Self(Offset::Fixed(offset)));
        }
        let name = std::str::from_utf8(text).ok()?;
        // Other texts would be rules of POSIX, in which +2 is west.
        let is_name = name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.contains('/')
            && !name.contains("..");
        let place = is_name.then(|| TimeZone::from_posix_tz(name).ok()).flatten()?;
        Some(Self(Offset::Place(Arc::new(place))))
    }

    /// The moment of a time in this zone, both in seconds since 1970. Of a time that there is twice,
    /// the first; of one that there is not, when clocks are set forward, as if they were not yet.
    pub(super) fn moment(&self, local: i64) -> i64 {
        let place = match &self.0 {
            Offset::Fixed(offset) => return local - offset,
            Offset::Place(place) => place,
        };
        let (before, after) = (offset_at(place, local - DAY), offset_at(place, local + DAY));
        let is_moment = |offset: &i64| offset_at(place, local - offset) == *offset;
        local - [before, after].into_iter().find(is_moment).unwrap_or(before)
    }

    /// The second moment that has the same time in this zone, when clocks are set back.
    pub(crate) fn again(&self, second: u64) -> Option<u64> {
        let Offset::Place(place) = &self.0 else { return None };
        let moment = i64::try_from(second).ok()?;
        let (now, later) = (offset_at(place, moment), offset_at(place, moment + DAY));
        let again = moment + (now - later);
        (now > later && offset_at(place, again) == later).then(|| u64::try_from(again).ok())?
    }
}

fn offset_at(place: &TimeZone, moment: i64) -> i64 {
    place.find_local_time_type(moment).map_or(0, |it| i64::from(it.ut_offset()))
}

/// An offset from UTC in seconds: `Z`, `+02:00`, `+0200`, `-05`.
pub(super) fn offset(text: &[u8]) -> Option<i64> {
    let (sign, rest) = match text {
        b"Z" | b"z" | b"UTC" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [a, b] => (digits(&[*a, *b])?, 0),
        [a, b, c, d] | [a, b, b':', c, d] => (digits(&[*a, *b])?, digits(&[*c, *d])?),
        _ => return None,
    };
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules of POSIX, which need no files: Berlin.
    fn berlin() -> Zone {
        let place = TimeZone::from_posix_tz("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        Zone(Offset::Place(Arc::new(place)))
    }

    #[test]
    fn clocks_are_set_forward_and_back() {
        // Midnight of 2026-07-01, 2026-01-01, in UTC.
        for (local, offset) in [(1_782_864_000, 7200), (1_767_225_600, 3600)] {
            assert_eq!(berlin().moment(local), local - offset);
            assert_eq!(berlin().again((local - offset) as u64), None);
        }
        // 2026-10-25 02:30 is there twice.
        let twice = 1_792_895_400;
        assert_eq!(berlin().moment(twice), twice - 7200);
        assert_eq!(berlin().again((twice - 7200) as u64), Some((twice - 3600) as u64));
        assert_eq!(berlin().again((twice - 3600) as u64), None);
        assert_eq!(berlin().moment(twice + 3600), twice, "half past three is there once");
        // 2026-03-29 02:30 is not there.
        let missing = 1_774_751_400;
        assert_eq!(berlin().moment(missing), missing - 3600);
        assert_eq!(berlin().moment(missing + 3600), missing - 3600);
    }

    #[test]
    fn names_that_are_no_zones_are_refused() {
        for text in ["", "CET-1CEST", "../../etc/passwd", "/etc/localtime", "Nowhere/Land", "+25"] {
            assert!(Zone::parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(matches!(Zone::parse(b"-0530").unwrap().0, Offset::Fixed(-19_800)));
    }
}
