use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use tollgate::Quota;

/// A unit of time, as files and messages write it. A month has 30 days, a year 365.
const UNITS: [(&str, Unit, u64); 7] = [
    ("second", Unit::Second, 1),
    ("minute", Unit::Minute, 60),
    ("hour", Unit::Hour, 60 * 60),
    ("day", Unit::Day, DAY),
    ("week", Unit::Week, 7 * DAY),
    ("month", Unit::Month, 30 * DAY),
    ("year", Unit::Year, 365 * DAY),
];

const DAY: u64 = 24 * 60 * 60;

/// All names, for people.
pub(super) const NAMES: &str = "second, minute, hour, day, week, month or year";

/// The time that a file means, in any case of letters.
pub(super) fn named(text: &str) -> Option<Duration> {
    let unit = UNITS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text));
    unit.map(|(.., seconds)| Duration::from_secs(*seconds))
}

/// The time that the number of a unit in a message stands for.
pub(crate) fn numbered(number: i32) -> Option<Duration> {
    let unit = UNITS.iter().find(|(_, unit, _)| *unit as i32 == number);
    unit.map(|(.., seconds)| Duration::from_secs(*seconds))
}

/// The unit in which a quota refills its burst, if there is one.
pub(crate) fn of_quota(quota: &Quota) -> Option<Unit> {
    let amount = u128::from(quota.amount());
    let refilled = quota.period()?.as_nanos() * u128::from(quota.burst());
    let unit = UNITS
        .iter()
        .find(|(.., seconds)| u128::from(*seconds) * 1_000_000_000 * amount == refilled);
    unit.map(|(_, unit, _)| *unit)
}

/// All quotas of as much in a unit.
pub(crate) fn quotas(amount: u64) -> impl Iterator<Item = Quota> {
    let quota = move |period| Quota::per(amount, Duration::from_secs(period)).build().ok();
    UNITS.iter().filter_map(move |(.., seconds)| quota(*seconds))
}
