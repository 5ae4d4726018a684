//! An hour of counts, second by second.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::Serialize;
use spillgate::Timestamp;
use spillgate_enforce::{LimitCounts, OtherCounts};

/// Seconds that are kept.
const KEPT: usize = 60 * 60;

/// Limits with traffic whose history is kept: up to 72 kB each. Of others only the present is shown.
const MOST_LIMITS: usize = 100;

/// Points that a report has at most.
const MOST_POINTS: u64 = 360;

/// The last hour: what was counted in each second.
#[derive(Default)]
pub(super) struct History {
    /// The second that the last point ends with, since the epoch; `None` before the first.
    end: Option<u64>,
    /// Nanoseconds of the first tick within its second: ticks come once per second, and one that is a
    /// little early or late must not fall into a neighbouring second.
    phase: u64,
    /// What each limit had counted at the last tick, and since the one before it, per second.
    seen: BTreeMap<String, Seen>,
    other_sums: [u64; 3],
    limits: BTreeMap<String, Series<4>>,
    others: Series<3>,
}

#[derive(Clone, Copy)]
struct Seen {
    sums: [u64; 4],
    rates: [u32; 4],
}

/// What was counted since the start.
pub(super) struct Counts<'a> {
    pub(super) limits: &'a [LimitCounts],
    pub(super) others: OtherCounts,
}

/// So many counts per second.
#[derive(Clone)]
struct Series<const N: usize> {
    /// The last is the newest. `None` if nobody knows: the server was not there, or asleep.
    points: VecDeque<Option<[u32; N]>>,
    /// Points since the last that was not zero.
    idle: usize,
}

/// Counts per point during the last minutes, oldest first. Null stands for a time in which the
/// server was not there, or a limit had not been met since.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "History")]
pub(crate) struct HistoryReport {
    /// Seconds per point.
    step: u64,
    /// When the last point ends, in seconds since 1970.
    end: u64,
    /// How many points there are.
    points: u64,
    /// Limits with traffic during the last hour, at most 100.
    limits: Vec<LimitHistory>,
    /// Requests that no limit decided.
    total: OtherHistory,
}

#[derive(Serialize, JsonSchema)]
struct LimitHistory {
    /// The limit's name.
    name: String,
    /// Requests that went ahead.
    allowed: Points,
    /// Requests that it denied.
    denied: Points,
    /// Requests that it would have denied, but for shadow mode.
    shadow_denied: Points,
    /// Requests that it shed.
    shed: Points,
}

#[derive(Serialize, JsonSchema)]
struct OtherHistory {
    /// Requests that met no limit.
    unlimited: Points,
    /// Requests of blocked callers.
    blocked: Points,
    /// Requests of banned callers.
    banned: Points,
}

type Points = Vec<Option<u64>>;

impl History {
    pub(super) fn push(&mut self, counts: &Counts<'_>, now: Timestamp) {
        let is_first = self.end.is_none();
        let elapsed = self.advance(now);
        let mut seen = BTreeMap::new();
        for limit in counts.limits {
            let sums = [limit.allowed, limit.denied, limit.shadow_denied, limit.shed];
            let before = self.seen.get(&limit.limit).map(|seen| seen.sums);
            // What was counted before the first look is of no known second.
            let before = before.unwrap_or(if is_first { sums } else { [0; 4] });
            let counts = difference(sums, before);
            self.push_limit(&limit.limit, counts, elapsed);
            let rates = counts.map(|count| count / u32::try_from(elapsed).unwrap_or(u32::MAX));
            seen.insert(limit.limit.clone(), Seen { sums, rates });
        }
        self.seen = seen;
        self.limits.retain(|name, series| {
            // A limit that was removed has no more traffic.
            if !self.seen.contains_key(name) {
                series.push([0; 4], elapsed);
            }
            series.idle < KEPT
        });
        let OtherCounts { unlimited, blocked, banned, .. } = counts.others;
        let sums = [unlimited, blocked, banned];
        let before = if is_first { sums } else { self.other_sums };
        self.others.push(difference(sums, before), elapsed);
        self.other_sums = sums;
    }

    /// Goes on to the second of a tick. Returns how many seconds have passed since the last one.
    fn advance(&mut self, now: Timestamp) -> usize {
        const SECOND: u64 = 1_000_000_000;
        /// A clock that is set back by more goes on from there.
        const EARLY: u64 = 5;
        if self.end.is_none() {
            self.phase = now.as_nanos() % SECOND;
        }
        let second = (now.as_nanos() + SECOND / 2 - self.phase) / SECOND;
        let (end, elapsed) = match self.end {
            Some(end) if second > end => (second, second - end),
            Some(end) if end - second <= EARLY => (end + 1, 1),
            _ => (second, 1),
        };
        self.end = Some(end);
        usize::try_from(elapsed).unwrap_or(KEPT).min(KEPT)
    }

    fn push_limit(&mut self, name: &str, counts: [u32; 4], elapsed: usize) {
        if let Some(series) = self.limits.get_mut(name) {
            return series.push(counts, elapsed);
        }
        if counts != [0; 4] && self.limits.len() < MOST_LIMITS {
            let mut series = Series::default();
            series.push(counts, elapsed);
            self.limits.insert(name.to_owned(), series);
        }
    }

    /// What was counted in the last second, under a limit.
    pub(super) fn last(&self, limit: &str) -> [u32; 4] {
        self.seen.get(limit).map(|seen| seen.rates).unwrap_or_default()
    }

    /// The same under no limit: unlimited, blocked, banned.
    pub(super) fn last_others(&self) -> [u32; 3] {
        self.others.last().unwrap_or_default()
    }

    pub(super) fn report(&self, minutes: u64) -> HistoryReport {
        let seconds = minutes * 60;
        let step = seconds.div_ceil(MOST_POINTS);
        let last = self.end.unwrap_or(0);
        // Points end at multiples of the step, so that they do not change from one report to the
        // next.
        let window = Window { step, newer: (last % step) as usize, points: seconds / step };
        let limits = self.limits.iter().map(|(name, series)| {
            let [allowed, denied, shadow_denied, shed] = series.report(window);
            LimitHistory { name: name.clone(), allowed, denied, shadow_denied, shed }
        });
        let [unlimited, blocked, banned] = self.others.report(window);
        HistoryReport {
            step,
            end: last - last % step,
            points: window.points,
            limits: limits.collect(),
            total: OtherHistory { unlimited, blocked, banned },
        }
    }
}

#[derive(Clone, Copy)]
struct Window {
    step: u64,
    /// How many of the newest points are left out.
    newer: usize,
    points: u64,
}

impl<const N: usize> Series<N> {
    fn push(&mut self, counts: [u32; N], elapsed: usize) {
        for _ in 1..elapsed {
            self.push_point(None);
        }
        self.idle = if counts == [0; N] { self.idle + elapsed } else { 0 };
        self.push_point(Some(counts));
    }

    fn push_point(&mut self, point: Option<[u32; N]>) {
        if self.points.len() >= KEPT {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    fn last(&self) -> Option<[u32; N]> {
        *self.points.back()?
    }

    fn report(&self, window: Window) -> [Points; N] {
        let mut report = [const { Points::new() }; N];
        let kept = self.points.len();
        for point in (0..window.points).rev() {
            let newest = window.newer + (point * window.step) as usize;
            let oldest = newest + window.step as usize;
            let seconds = kept.saturating_sub(oldest)..kept.saturating_sub(newest);
            let known: Vec<_> = self.points.range(seconds).flatten().collect();
            for (column, report) in report.iter_mut().enumerate() {
                let sum = || known.iter().map(|counts| u64::from(counts[column])).sum();
                report.push((!known.is_empty()).then(sum));
            }
        }
        report
    }
}

impl<const N: usize> Default for Series<N> {
    fn default() -> Self {
        Self { points: VecDeque::new(), idle: 0 }
    }
}

fn difference<const N: usize>(sums: [u64; N], before: [u64; N]) -> [u32; N] {
    let mut counts = [0; N];
    for ((count, sum), before) in counts.iter_mut().zip(sums).zip(before) {
        *count = u32::try_from(sum.saturating_sub(before)).unwrap_or(u32::MAX);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history that was told at these seconds how many calls of `api` were allowed.
    fn history(ticks: impl IntoIterator<Item = (u64, u64)>) -> History {
        let mut history = History::default();
        for (second, allowed) in ticks {
            push(&mut history, second, "api", allowed);
        }
        history
    }

    fn push(history: &mut History, second: u64, limit: &str, allowed: u64) {
        let metrics = spillgate_enforce::Metrics::new();
        let limits = [counts(limit, allowed)];
        let counts = Counts { limits: &limits, others: metrics.others() };
        history.push(&counts, Timestamp::from_secs(second));
    }

    fn counts(limit: &str, allowed: u64) -> LimitCounts {
        let mut counts = LimitCounts::new(limit);
        counts.allowed = allowed;
        counts
    }

    fn allowed(report: &HistoryReport) -> Vec<Option<u64>> {
        report.limits[0].allowed.clone()
    }

    #[test]
    fn a_point_has_what_was_counted_in_its_seconds() {
        let history = history((0..=600).map(|second| (1000 + second, second * 2)));
        let report = history.report(5);
        assert_eq!((report.step, report.end, report.points), (1, 1600, 300));
        assert_eq!(allowed(&report), vec![Some(2); 300]);
        let report = history.report(60);
        assert_eq!((report.step, report.end, report.points), (10, 1600, 360));
        let points = allowed(&report);
        assert_eq!(points[359], Some(20));
        assert_eq!(points[0], None, "it was not there yet");
        assert_eq!(points.iter().flatten().sum::<u64>(), 1200, "what there was, and no more");
    }

    #[test]
    fn points_stay_the_same_while_time_goes_on() {
        let mut history = history((0..100).map(|second| (1000 + second, second * second)));
        let before = history.report(15);
        push(&mut history, 1100, "api", 100 * 100);
        let after = history.report(15);
        assert_eq!((before.end, after.end), (1098, 1098));
        assert_eq!(allowed(&before), allowed(&after));
    }

    #[test]
    fn seconds_in_which_nobody_looked_are_unknown() {
        let history = history([(1000, 0), (1001, 5), (1005, 9), (1003, 10), (1004, 12)]);
        let points = allowed(&history.report(1));
        let known = [Some(5), None, None, None, Some(4), Some(1), Some(2)];
        assert_eq!(points[points.len() - 7..], known, "a clock that was set back goes on");
        assert_eq!(history.last("api"), [2, 0, 0, 0]);
        let asleep = self::history([(1000, 0), (1001, 5), (1005, 105)]);
        assert_eq!(asleep.last("api"), [25, 0, 0, 0], "per second");
    }

    #[test]
    fn ticks_that_come_a_little_early_or_late_fall_into_their_seconds() {
        let mut history = History::default();
        for tick in 0_u64..100 {
            let jitter = if tick % 2 == 0 { 0 } else { 999_900_000 };
            let now = Timestamp::from_nanos((1_000 + tick / 2 * 2) * 1_000_000_000 + jitter);
            let limits = [counts("api", tick)];
            let others = spillgate_enforce::Metrics::new().others();
            history.push(&Counts { limits: &limits, others }, now);
        }
        let points = allowed(&history.report(5));
        assert_eq!(points[points.len() - 99..], vec![Some(1); 99]);
    }

    #[test]
    fn what_was_counted_before_the_first_look_has_no_second() {
        let history = history([(1000, 70), (1001, 71)]);
        let points = allowed(&history.report(1));
        assert_eq!(points.iter().flatten().sum::<u64>(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut history = History::default();
        let metrics = spillgate_enforce::Metrics::new();
        let limits: Vec<_> = (0..150).map(|limit| counts(&format!("l{limit}"), 1)).collect();
        push(&mut history, 0, "old", 7);
        for second in 1..4000 {
            let counts = Counts { limits: &limits, others: metrics.others() };
            history.push(&counts, Timestamp::from_secs(second));
            assert_eq!(history.limits.len(), if second < 3601 { MOST_LIMITS } else { 0 });
        }
        assert_eq!(history.others.points.len(), KEPT);
        // After an hour without traffic there is room for others, who begin with this second.
        push(&mut history, 4000, "l7", 3);
        assert_eq!(history.last("l7"), [2, 0, 0, 0]);
    }
}
