//! Rounds: every contender in turn, so that whatever slows the machine down for a while
//! slows all of them.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::Result;
use crate::settings::Settings;

/// Something that is done over and over.
pub trait Work {
    /// Does it so many times, and goes on where it ended the last time.
    fn repeat(&mut self, times: usize) -> Result<()>;
}

struct Lane<W> {
    work: W,
    /// How many times fill a turn.
    times: usize,
    rounds: Vec<f64>,
}

/// The nanoseconds of CPU time that each work takes, in each round.
pub fn in_turn<W: Work>(works: Vec<W>, settings: &Settings) -> Result<Vec<Vec<f64>>> {
    let calibrated = |work| Lane::calibrated(work, settings.turn);
    let mut lanes = works.into_iter().map(calibrated).collect::<Result<Vec<_>>>()?;
    for round in 0..settings.rounds {
        // Another one begins each time, so that none always follows the same.
        for turn in 0..lanes.len() {
            let next = (round + turn) % lanes.len();
            lanes[next].take_turn()?;
        }
    }
    Ok(lanes.into_iter().map(|lane| lane.rounds).collect())
}

impl<W: Work> Lane<W> {
    /// Finds how many times fill a turn, which also warms everything up.
    fn calibrated(work: W, turn: Duration) -> Result<Self> {
        let mut lane = Self { work, times: 1_000, rounds: Vec::new() };
        loop {
            let factor = turn.as_secs_f64() / lane.time()?.as_secs_f64().max(1e-9);
            lane.times = (lane.times as f64 * factor.clamp(0.1, 16.0)).max(1.0) as usize;
            if factor < 8.0 {
                return Ok(lane);
            }
        }
    }

    fn take_turn(&mut self) -> Result<()> {
        let nanos = self.time()?.as_nanos() as f64 / self.times as f64;
        self.rounds.push(nanos);
        Ok(())
    }

    fn time(&mut self) -> Result<Duration> {
        let begin = cpu_time()?;
        self.work.repeat(self.times)?;
        Ok(cpu_time()? - begin)
    }
}

/// What this thread has run so far: time that others had the processor does not count.
fn cpu_time() -> nix::Result<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from)
}
