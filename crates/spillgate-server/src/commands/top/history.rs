//! Requests per second during the last minutes.

use std::collections::VecDeque;

use super::status::{Past, Second};

/// How many seconds are kept.
pub(super) const KEPT: usize = 300;

/// One second of it; None if the server did not answer.
type Point = Option<Second>;

#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The oldest first; the last is of the second `end`.
    points: VecDeque<Point>,
    end: i64,
}

impl History {
    /// Seconds without an answer become a gap.
    pub(super) fn push(&mut self, time: f64, second: Second) {
        let now = time as i64;
        let missed = now - self.end;
        // What the server remembers may be of a moment later.
        if (-5..0).contains(&missed) {
            return;
        }
        if self.points.is_empty() || missed < 0 || missed > KEPT as i64 {
            self.points.clear();
        } else {
            // Questions are a second apart, but not exactly: one may fall into the second after.
            let between = if missed == 2 { Some(second) } else { None };
            (1..missed).for_each(|_| self.points.push_back(between));
            if missed == 0 {
                self.points.pop_back();
            }
        }
        self.points.push_back(Some(second));
        self.end = now;
        while self.points.len() > KEPT {
            self.points.pop_front();
        }
    }

    /// Begins with what the server remembers, of points that are one second each.
    pub(super) fn replace(&mut self, past: &Past) {
        let longest = past.limits.iter().map(|limit| limit.allowed.len()).max().unwrap_or(0);
        if past.step != 1 || longest == 0 {
            return;
        }
        let at = |counts: &[Option<u64>], point: usize| counts.get(point).copied().flatten();
        let point = |point: usize| {
            let known = past.limits.iter().filter(|limit| at(&limit.allowed, point).is_some());
            known.fold(None, |sum: Point, limit| {
                let mut sum = sum.unwrap_or_default();
                sum.allowed += at(&limit.allowed, point).unwrap_or(0);
                sum.denied += at(&limit.denied, point).unwrap_or(0);
                sum.shadow_denied += at(&limit.shadow_denied, point).unwrap_or(0);
                sum.shed += at(&limit.shed, point).unwrap_or(0);
                Some(sum)
            })
        };
        self.points = (longest.saturating_sub(KEPT)..longest).map(point).collect();
        // The last point ends where the next second begins.
        self.end = past.end - 1;
    }

    /// Means per second in `columns` parts of the time that is kept, the oldest first. They begin
    /// at multiples of their length, so that a bar grows in its place and then only moves.
    pub(super) fn means(&self, columns: usize, of: impl Fn(&Second) -> u64) -> Vec<Option<f64>> {
        let step = KEPT.div_ceil(columns.max(1)) as i64;
        let last = self.end.div_euclid(step);
        let mut sums = vec![(0, 0); columns];
        for (back, point) in self.points.iter().rev().enumerate() {
            let age = last - (self.end - back as i64).div_euclid(step);
            let column = usize::try_from(age).ok().and_then(|age| columns.checked_sub(age + 1));
            if let (Some((sum, count)), Some(second)) =
                (column.and_then(|column| sums.get_mut(column)), point)
            {
                *sum += of(second);
                *count += 1;
            }
        }
        let mean = |(sum, count)| (count > 0).then(|| sum as f64 / f64::from(count));
        sums.into_iter().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(history: &History, columns: usize) -> Vec<Option<f64>> {
        history.means(columns, |second| second.allowed)
    }

    fn second(allowed: u64) -> Second {
        Second { allowed, ..Second::default() }
    }

    #[test]
    fn seconds_without_an_answer_are_a_gap() {
        let mut history = History::default();
        history.push(1000.2, second(1));
        history.push(1001.2, second(2));
        history.push(1001.9, second(3));
        history.push(1004.2, second(5));
        let shown = allowed(&history, KEPT);
        assert_eq!(shown[KEPT - 5..], [Some(1.0), Some(3.0), None, None, Some(5.0)]);
        // The clock of the server was set.
        history.push(10.0, second(7));
        assert_eq!(allowed(&history, KEPT).iter().flatten().count(), 1);
    }

    #[test]
    fn what_the_server_remembers_is_shown_at_once() {
        let past = serde_json::json!({ "step": 1, "end": 1003, "points": 3, "limits": [
            { "name": "a", "allowed": [null, 2, 3], "denied": [null, 1, 0] },
            { "name": "b", "allowed": [null, null, 4], "denied": [null, null, 5] },
        ] });
        let mut history = History::default();
        history.replace(&serde_json::from_value(past).unwrap());
        history.push(1003.2, second(9));
        let shown = allowed(&history, KEPT);
        assert_eq!(shown[KEPT - 4..], [None, Some(2.0), Some(7.0), Some(9.0)]);
        let denied = history.means(KEPT, |second| second.denied);
        assert_eq!(denied[KEPT - 3..], [Some(1.0), Some(5.0), Some(0.0)]);
        history.replace(&Past::default());
        assert_eq!(allowed(&history, KEPT), shown);
    }

    #[test]
    fn bars_keep_their_seconds_while_time_passes() {
        let mut history = History::default();
        (0..1000).for_each(|time| history.push(f64::from(time), second(time as u64)));
        // Steps of 30 seconds; the last has but 10.
        let shown = allowed(&history, 10);
        assert_eq!(shown[9], Some((990..1000).sum::<u64>() as f64 / 10.0));
        assert_eq!(shown[8], Some((960..990).sum::<u64>() as f64 / 30.0));
        assert_eq!(allowed(&history, 0), []);
        assert_eq!(allowed(&History::default(), 2), [None, None]);
    }
}
