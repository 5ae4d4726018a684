//! The longest times in which callers got nothing.

use spillgate::Timestamp;

/// How many are kept.
const KEPT: usize = 20;

/// Refusals of one caller in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) refused: u64,
}

impl Run {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { since: now, until: now, refused: 0 }
    }

    pub(crate) fn extend(&mut self, now: Timestamp) {
        self.until = now;
        self.refused += 1;
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.until.since(self.since).as_secs_f64()
    }
}

/// The longest run of each caller, the longest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lockouts(Vec<(String, Run)>);

impl Lockouts {
    pub(crate) fn note(&mut self, caller: &str, run: &Run) {
        let length = |run: &Run| run.until.since(run.since);
        let shortest = self.0.last().map(|(_, run)| length(run));
        if run.refused < 2 || (self.0.len() == KEPT && shortest >= Some(length(run))) {
            return;
        }
        if let Some(place) = self.0.iter().position(|(other, _)| other == caller) {
            if length(&self.0[place].1) >= length(run) {
                return;
            }
            self.0.remove(place);
        }
        let place = self.0.partition_point(|(_, longer)| length(longer) >= length(run));
        self.0.insert(place, (caller.to_owned(), *run));
        self.0.truncate(KEPT);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, Run)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_longest_of_each_caller_are_kept_in_order() {
        let mut lockouts = Lockouts::default();
        for length in (0..100).rev().chain(100..200) {
            let mut run = Run::new(Timestamp::from_secs(1000));
            run.extend(Timestamp::from_secs(1000));
            run.extend(Timestamp::from_secs(1000) + Duration::from_secs(length));
            lockouts.note(&format!("ip:203.0.113.{}", length / 2), &run);
        }
        let lengths: Vec<_> = lockouts.iter().map(|(_, run)| run.seconds() as u64).collect();
        assert_eq!(lengths, (160..200).rev().step_by(2).collect::<Vec<_>>());
    }
}
