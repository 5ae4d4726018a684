//! Denials per second of each caller, from counts of a moving time.

use std::collections::{HashMap, VecDeque};

use super::status::Top;

/// Over how many seconds a rate is taken. Counts are of whole requests: over one second, a caller
/// who is denied twice in three would jump between 0 and 1.
const OVER: f64 = 5.0;

#[derive(Clone, Debug, Default)]
pub(super) struct CallerRates {
    /// Times and counts, by limit and caller, the oldest first.
    counts: HashMap<(String, String), VecDeque<(f64, u64)>>,
}

impl CallerRates {
    pub(super) fn apply(&mut self, time: f64, top: &Top) {
        let mut before = std::mem::take(&mut self.counts);
        for caller in &top.callers {
            let id = (caller.limit.raw().to_owned(), caller.caller.raw().to_owned());
            let mut counts = before.remove(&id).unwrap_or_default();
            let count = caller.denied.saturating_add(caller.shadow_denied);
            // The server has forgotten the older half of what it counts over.
            if counts.back().is_some_and(|(_, last)| *last > count) {
                counts.clear();
            }
            counts.push_back((time, count));
            // One of before the time is kept, to begin with.
            while counts.get(1).is_some_and(|(second, _)| time - second >= OVER) {
                counts.pop_front();
            }
            self.counts.insert(id, counts);
        }
    }

    /// None until there are two counts.
    pub(super) fn per_second(&self, limit: &str, caller: &str) -> Option<f64> {
        let counts = self.counts.get(&(limit.to_owned(), caller.to_owned()))?;
        let ((begin, first), (end, last)) = (counts.front()?, counts.back()?);
        (end > begin).then(|| last.saturating_sub(*first) as f64 / (end - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::super::status::Caller;
    use super::*;

    #[test]
    fn a_rate_is_of_the_last_seconds_and_survives_a_count_that_begins_anew() {
        let mut rates = CallerRates::default();
        let counts = [10, 20, 30, 40, 50, 60, 60, 60, 5, 9];
        let mut seen = Vec::new();
        for (second, denied) in counts.into_iter().enumerate() {
            let caller =
                Caller { limit: "api".into(), caller: "a".into(), denied, ..Caller::default() };
            let top = Top { seconds: 1.0, callers: vec![caller] };
            rates.apply(second as f64, &top);
            seen.push(rates.per_second("api", "a"));
        }
        let some = |rates: &[f64]| rates.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(seen[0], None);
        assert_eq!(seen[1..8], some(&[10.0, 10.0, 10.0, 10.0, 10.0, 8.0, 6.0]));
        assert_eq!(seen[8..], [None, Some(4.0)]);
        rates.apply(10.0, &Top::default());
        assert_eq!(rates.per_second("api", "a"), None, "what is gone is forgotten");
    }
}
