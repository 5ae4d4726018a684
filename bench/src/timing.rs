//! One timed run of one limiter.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::keys::KeySet;
use crate::peer::{Contender, Stretch};

/// What one run took, over all its threads.
#[derive(Clone, Copy)]
pub struct Sample {
    pub checks: u64,
    pub allowed: u64,
    pub wall: Duration,
}

impl Sample {
    /// Nanoseconds of wall time per check, over all threads together.
    pub fn nanos(&self) -> f64 {
        self.wall.as_nanos() as f64 / self.checks as f64
    }
}

/// Runs `stretch` on each of `threads` threads, each beginning elsewhere.
pub fn time(contender: &dyn Contender, keys: &KeySet, stretch: Stretch, threads: usize) -> Sample {
    let barrier = Barrier::new(threads);
    let run = |thread: usize| {
        let start = stretch.start + thread * keys.len() / threads;
        barrier.wait();
        let begin = Instant::now();
        let allowed = contender.run(keys, Stretch { start, ..stretch });
        (begin, Instant::now(), allowed)
    };
    let runs: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let own = run(0);
        let joined = others.into_iter().map(|other| other.join().expect("a run that ends"));
        std::iter::once(own).chain(joined).collect()
    });
    let begin = runs.iter().map(|run| run.0).min().expect("at least one thread");
    let end = runs.iter().map(|run| run.1).max().expect("at least one thread");
    Sample {
        checks: stretch.checks * threads as u64,
        allowed: runs.iter().map(|run| run.2).sum(),
        wall: end - begin,
    }
}
