//! What numbers and times may be, wherever they are given.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::Given;

/// Of anything that is counted: as many as a table can have.
pub(super) const COUNT: RangeInclusive<u64> = 1..=1 << 32;
/// With less hyper does not read, and more would only help those who attack.
pub(super) const HEAD: RangeInclusive<u64> = 8192..=1 << 20;
pub(super) const BODY: RangeInclusive<u64> = 1..=1 << 30;
/// With less, a few clients that read slowly would hold up the others.
pub(super) const BUFFERS: RangeInclusive<u64> = 1 << 20..=1 << 40;
/// Sooner, snapshots would be written all the time, and clients cut off while they speak.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::MAX;
/// One is enough for a core's worth of decisions; more than these would only be idle.
pub(super) const STORE_CONNECTIONS: RangeInclusive<u64> = 1..=64;
pub(super) const NODES: RangeInclusive<u64> = 1..=100_000;
/// Less than a round trip on the same machine would only ever be an outage; nobody waits
/// longer for a decision.
pub(super) const STORE_TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(10);
/// A proxy may keep no connection; more than these would be more than a service accepts.
pub(super) const KEPT: RangeInclusive<u64> = 0..=100_000;
/// Sooner, healthy upstreams would be given up; nobody waits for weeks.
pub(super) const PROXY_TIME: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(30 * 24 * 60 * 60);

impl Given {
    /// What is beyond its range. Numbers of the file were judged where they stand.
    pub(super) fn beyond(&self) -> Vec<String> {
        let counts = [
            ("throttle-capacity", self.throttle_capacity, COUNT),
            ("reservations", self.reservations, COUNT),
            ("connections", self.connections, COUNT),
            ("resp-buffers", self.resp_buffers, BUFFERS),
            ("http-head", self.http_head, HEAD),
            ("http-body", self.http_body, BODY),
        ];
        let times = [
            ("snapshot-every", self.snapshot_every),
            ("http-idle", self.http_idle),
            ("resp-idle", self.resp_idle),
            ("stalled", self.stalled),
        ];
        let counts =
            counts.into_iter().filter_map(|(key, count, range)| judge(key, count?, &range));
        let times = times
            .into_iter()
            .filter_map(|(key, time)| judge_time(key, time?.0, &(SOONEST..=LATEST)));
        counts.chain(times).chain(self.store.beyond()).chain(self.proxy.beyond()).collect()
    }
}

/// What is wrong with a number, if it is beyond its range.
pub(super) fn judge(key: &str, count: u64, range: &RangeInclusive<u64>) -> Option<String> {
    match count {
        count if count < *range.start() => Some(wrong(key, count, "least", range.start())),
        count if count > *range.end() => Some(wrong(key, count, "most", range.end())),
        _ => None,
    }
}

/// What is wrong with a time, if it is beyond its range.
pub(super) fn judge_time(
    key: &str,
    time: Duration,
    range: &RangeInclusive<Duration>,
) -> Option<String> {
    // A duration has no other form for people.
    let wrong = |at, bound| Some(wrong(key, format!("{time:?}"), at, format!("{bound:?}")));
    match time {
        time if time < *range.start() => wrong("least", range.start()),
        time if time > *range.end() => wrong("most", range.end()),
        _ => None,
    }
}

fn wrong(key: &str, value: impl Display, at: &str, bound: impl Display) -> String {
    format!("{key} is {value}; write at {at} {bound}")
}
