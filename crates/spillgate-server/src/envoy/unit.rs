use std::time::Duration;

use crate::protocol::grpc::messages::Unit;

/// Units of time, named as in protobuf. A month has 30 days, a year 365.
const UNITS: [(&str, Unit, u64); 7] = [
    ("SECOND", Unit::Second, 1),
    ("MINUTE", Unit::Minute, 60),
    ("HOUR", Unit::Hour, 60 * 60),
    ("DAY", Unit::Day, DAY),
    ("WEEK", Unit::Week, 7 * DAY),
    ("MONTH", Unit::Month, 30 * DAY),
    ("YEAR", Unit::Year, 365 * DAY),
];

const DAY: u64 = 24 * 60 * 60;

pub(super) const NAMES: &str = "second, minute, hour, day, week, month or year";

/// The duration of a unit in a file, in any case.
pub(super) fn named(text: &str) -> Option<Duration> {
    let unit = UNITS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text));
    unit.map(|(.., seconds)| Duration::from_secs(*seconds))
}

/// The names of units in JSON, each with its number.
pub(crate) fn json_names() -> impl Iterator<Item = (&'static str, i32)> {
    UNITS.iter().map(|(name, unit, _)| (*name, *unit as i32))
}

pub(crate) fn numbered(number: i32) -> Option<Duration> {
    let unit = UNITS.iter().find(|(_, unit, _)| *unit as i32 == number);
    unit.map(|(.., seconds)| Duration::from_secs(*seconds))
}

/// The unit of this duration, if there is one.
pub(crate) fn lasting(time: Duration) -> Unit {
    let unit = UNITS.iter().find(|(.., seconds)| Duration::from_secs(*seconds) == time);
    unit.map_or(Unit::Unknown, |(_, unit, _)| *unit)
}
