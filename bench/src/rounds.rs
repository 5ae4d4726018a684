//! Rounds: every contender in turn, so that whatever slows the machine down for
//! a while slows all of them.

use std::time::Duration;

use crate::keys::KeySet;
use crate::peer::{Contender, Stretch};
use crate::timing::{Sample, time};
use crate::workload::{Outcome, Pacing};

/// What all contenders of a comparison are given to do.
pub struct Job<'a> {
    pub keys: &'a KeySet,
    pub pacing: Pacing,
    pub expected: Outcome,
    pub threads: usize,
}

pub struct Schedule {
    pub rounds: usize,
    /// How long one contender's turn should take.
    pub turn: Duration,
}

struct Lane<'a> {
    contender: &'a dyn Contender,
    checks: u64,
    cursor: usize,
    samples: Vec<Sample>,
}

/// The samples of each contender, in the order of `contenders`.
pub fn run(contenders: &[&dyn Contender], job: &Job, schedule: &Schedule) -> Vec<Vec<Sample>> {
    let mut lanes: Vec<_> = contenders
        .iter()
        .map(|contender| Lane::calibrated(*contender, job, schedule.turn))
        .collect();
    for round in 0..schedule.rounds {
        // Another one begins each time, so that none always follows the same.
        for turn in 0..lanes.len() {
            let lane = (round + turn) % lanes.len();
            let sample = lanes[lane].take_turn(job);
            lanes[lane].samples.push(sample);
        }
    }
    lanes.into_iter().map(|lane| lane.samples).collect()
}

impl<'a> Lane<'a> {
    /// Finds how many checks fill a turn, which also warms everything up.
    fn calibrated(contender: &'a dyn Contender, job: &Job, turn: Duration) -> Self {
        let mut lane = Self { contender, checks: 1_000, cursor: 0, samples: Vec::new() };
        loop {
            let wall = lane.take_turn(job).wall;
            let factor = turn.as_secs_f64() / wall.as_secs_f64().max(1e-9);
            lane.checks = (lane.checks as f64 * factor.clamp(0.1, 16.0)).max(1.0) as u64;
            if factor < 8.0 {
                return lane;
            }
        }
    }

    /// Goes on where the last turn ended: beginning anew each time would leave
    /// the first keys, and their callers, in the cache.
    fn take_turn(&mut self, job: &Job) -> Sample {
        let stretch = Stretch {
            start: self.cursor,
            checks: self.checks,
            pacing: job.pacing,
            expected: job.expected,
        };
        self.cursor = (self.cursor + self.checks as usize) % job.keys.len();
        time(self.contender, job.keys, stretch, job.threads)
    }
}

/// The middle of `values`, or the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), 2.5);
    }
}
