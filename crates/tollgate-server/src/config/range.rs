//! What numbers and times may be, wherever they are given.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::Given;
use super::value::Span;

/// Of anything that is counted: as many as a table can have.
pub(super) const COUNT: RangeInclusive<u64> = 1..=1 << 32;
/// With less hyper does not read, and more would only help those who attack.
pub(super) const HEAD: RangeInclusive<u64> = 8192..=1 << 20;
pub(super) const BODY: RangeInclusive<u64> = 1..=1 << 30;
/// Sooner, snapshots would be written all the time, and clients cut off while they speak.
const SOONEST: Duration = Duration::from_millis(100);

impl Given {
    /// What is beyond its range. Numbers of the file were judged where they stand.
    pub(super) fn beyond(&self) -> Vec<String> {
        let counts = [
            ("throttle-capacity", self.throttle_capacity, COUNT),
            ("reservations", self.reservations, COUNT),
            ("connections", self.connections, COUNT),
            ("http-head", self.http_head, HEAD),
            ("http-body", self.http_body, BODY),
        ];
        let times = [
            ("snapshot-every", self.snapshot_every),
            ("http-idle", self.http_idle),
            ("resp-idle", self.resp_idle),
            ("stalled", self.stalled),
        ];
        let counts = counts.into_iter().filter_map(|(key, count, range)| {
            let (least, most) = range.into_inner();
            match count? {
                count if count < least => Some(wrong(key, count, "least", least)),
                count if count > most => Some(wrong(key, count, "most", most)),
                _ => None,
            }
        });
        let times = times.into_iter().filter_map(|(key, time)| {
            let Span(time) = time.filter(|Span(time)| *time < SOONEST)?;
            // A duration has no other form for people.
            Some(wrong(key, format!("{time:?}"), "least", format!("{SOONEST:?}")))
        });
        counts.chain(times).collect()
    }
}

fn wrong(key: &str, value: impl Display, at: &str, bound: impl Display) -> String {
    format!("{key} is {value}; write at {at} {bound}")
}
