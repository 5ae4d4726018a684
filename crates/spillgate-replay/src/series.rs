//! Counts over time, in bounded memory.

use spillgate::Timestamp;

/// How long an interval may be, in seconds: the shortest for which all fit.
const WIDTHS: [u64; 9] = [1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400];

/// The most intervals that are kept.
const MAX_INTERVALS: usize = 1500;

/// Allowed and refused requests by time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    place: usize,
    /// The number of the first interval since 1970.
    first: u64,
    counts: Vec<[u64; 2]>,
}

impl Series {
    /// Counts a request.
    #[inline]
    pub fn add(&mut self, time: Timestamp, is_allowed: bool) {
        let mut interval = self.interval(time);
        if self.counts.is_empty() {
            self.first = interval;
        }
        // Time never goes back in a replay.
        interval = interval.max(self.first);
        while interval - self.first >= MAX_INTERVALS as u64 && self.place + 1 < WIDTHS.len() {
            *self = self.widened(self.place + 1);
            interval = self.interval(time).max(self.first);
        }
        let place = ((interval - self.first) as usize).min(100 * MAX_INTERVALS);
        if place >= self.counts.len() {
            self.counts.resize(place + 1, [0; 2]);
        }
        self.counts[place][usize::from(!is_allowed)] += 1;
    }

    fn interval(&self, time: Timestamp) -> u64 {
        time.as_nanos() / 1_000_000_000 / self.width()
    }

    /// The length of an interval in seconds.
    #[must_use]
    pub fn width(&self) -> u64 {
        WIDTHS[self.place]
    }

    /// The same with so few intervals that they can be shown.
    #[must_use]
    pub fn shortened(&self, most: usize) -> Self {
        let places = self.place..WIDTHS.len() - 1;
        let fits = |place: &usize| self.widened(*place).counts.len() <= most;
        self.widened(places.into_iter().find(fits).unwrap_or(WIDTHS.len() - 1))
    }

    /// The same by hour, or longer.
    #[must_use]
    pub fn by_hour(&self) -> Self {
        self.widened(self.place.max(4))
    }

    fn widened(&self, place: usize) -> Self {
        let factor = WIDTHS[place] / self.width();
        let mut wide = Self { place, first: self.first / factor, counts: Vec::new() };
        for (number, [allowed, refused]) in (self.first..).zip(&self.counts) {
            let place = (number / factor - wide.first) as usize;
            wide.counts.resize(wide.counts.len().max(place + 1), [0; 2]);
            wide.counts[place][0] += allowed;
            wide.counts[place][1] += refused;
        }
        wide
    }

    /// The start of each interval, and how many requests were allowed and refused in it.
    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, u64, u64)> + '_ {
        let starts = (self.first..).map(|number| Timestamp::from_secs(number * self.width()));
        starts.zip(&self.counts).map(|(start, [allowed, refused])| (start, *allowed, *refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_and_nothing_is_lost() {
        let mut series = Series::default();
        let start = 1_794_889_960;
        for step in 0..20_000 {
            series.add(Timestamp::from_secs(start + step * 997), step % 3 > 0);
        }
        assert!(series.counts.len() <= MAX_INTERVALS, "{}", series.counts.len());
        for series in [&series, &series.shortened(24), &series.by_hour()] {
            let all = series.iter().fold((0, 0), |all, (_, yes, no)| (all.0 + yes, all.1 + no));
            assert_eq!(all, (13_333, 6667));
        }
        assert!(series.shortened(24).counts.len() <= 24);
        let (first, ..) = series.iter().next().unwrap();
        assert!(first <= Timestamp::from_secs(start));
    }
}
