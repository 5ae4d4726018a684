/// What a bucket may admit: `burst` at once, and one more in every `interval` nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) burst: u64,
    pub(crate) interval: u64,
}

/// When something was admitted: no earlier than the first, no later than the second, in
/// nanoseconds. Both are the same where it is known exactly.
pub(crate) type Span = (u64, u64);

impl Bound {
    /// How many tokens more than the burst and what was refilled were surely admitted in the
    /// worst of all sub-intervals: 0 if none of them has too many.
    ///
    /// An admission counts for an interval only if all of its span lies within, so that
    /// nothing is held against a limiter that it may not have done.
    pub(crate) fn excess(&self, spans: &[Span]) -> u64 {
        let Some(origin) = spans.iter().map(|span| span.0).min() else { return 0 };
        let since = |time: u64| i64::try_from(time - origin).unwrap();
        let interval = i64::try_from(self.interval).unwrap();
        let mut by_end: Vec<_> = spans.iter().map(|span| (since(span.1), since(span.0))).collect();
        by_end.sort_unstable();
        let mut ends = Ends::new(by_end.len());
        let mut by_begin: Vec<_> = by_end.iter().enumerate().collect();
        by_begin.sort_unstable_by_key(|(_, (_, begin))| std::cmp::Reverse(*begin));
        let mut most = 0;
        for (place, (end, begin)) in by_begin {
            // All that begin at this moment or later are in; the interval begins with it, and
            // ends with whichever of them makes it worst.
            ends.admit(place, *end, interval);
            most = most.max(ends.best() + begin);
        }
        let allowed = i64::try_from(self.burst).unwrap() * interval;
        u64::try_from(most - allowed).map_or(0, |more| more.div_ceil(self.interval))
    }
}

/// A tree over the ends of admissions in their order. For each part of them, it has the time
/// that all admitted in it are worth, and the most that those up to one of them are worth
/// beyond the end of that one.
struct Ends(Vec<(i64, i64)>);

impl Ends {
    fn new(admissions: usize) -> Self {
        // Less than any that is admitted, and far from what can be counted.
        Self(vec![(0, i64::MIN / 2); 2 * admissions.next_power_of_two()])
    }

    fn admit(&mut self, place: usize, end: i64, worth: i64) {
        let mut node = self.0.len() / 2 + place;
        self.0[node] = (worth, worth - end);
        while node > 1 {
            node /= 2;
            let (left, right) = (self.0[2 * node], self.0[2 * node + 1]);
            self.0[node] = (left.0 + right.0, left.1.max(left.0 + right.1));
        }
    }

    fn best(&self) -> i64 {
        self.0[1].1
    }
}
