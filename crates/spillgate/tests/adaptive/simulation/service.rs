use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Random;

/// How long calls take when nothing else is going on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Anything, exponentially distributed around a mean of so many seconds.
    Exponential(f64),
    /// As many seconds, give or take a share of it.
    Constant(f64, f64),
}

impl Work {
    pub(crate) fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Exponential(mean) => mean * random.exponential(),
            Self::Constant(mean, spread) => mean * (1.0 + spread * (2.0 * random.unit() - 1.0)),
        }
    }
}

/// A service that takes in whatever it is given, as most do.
#[derive(Debug)]
pub(crate) enum Service {
    /// So many calls at a time, the others wait in line.
    Workers { free: usize, waiting: VecDeque<(usize, f64)>, running: BinaryHeap<Reverse<Due>> },
    /// All calls at the same time, on so many processors: the more, the slower each.
    Shared { cores: f64, now: f64, done: f64, running: BinaryHeap<Reverse<Due>> },
}

/// A call and when it is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Due {
    pub(crate) at: f64,
    pub(crate) call: usize,
}

impl Eq for Due {}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.total_cmp(&other.at).then(self.call.cmp(&other.call))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Service {
    pub(crate) fn workers(count: usize) -> Self {
        Self::Workers { free: count, waiting: VecDeque::new(), running: BinaryHeap::new() }
    }

    pub(crate) fn shared(cores: f64) -> Self {
        Self::Shared { cores, now: 0.0, done: 0.0, running: BinaryHeap::new() }
    }

    /// Takes in a call that needs so much work.
    pub(crate) fn start(&mut self, call: usize, work: f64, at: f64) {
        self.advance(at);
        match self {
            Self::Workers { free: 0, waiting, .. } => waiting.push_back((call, work)),
            Self::Workers { free, running, .. } => {
                *free -= 1;
                running.push(Reverse(Due { at: at + work, call }));
            }
            Self::Shared { done, running, .. } => {
                running.push(Reverse(Due { at: *done + work, call }));
            }
        }
    }

    /// The call that is over next, and when, if no other is started before.
    pub(crate) fn next(&self) -> Option<Due> {
        match self {
            Self::Workers { running, .. } => running.peek().map(|due| due.0),
            Self::Shared { now, done, running, .. } => {
                let Reverse(due) = running.peek()?;
                Some(Due { at: now + (due.at - done) / self.speed(), call: due.call })
            }
        }
    }

    /// Ends the [next](Self::next) one.
    pub(crate) fn finish(&mut self, at: f64) {
        self.advance(at);
        match self {
            Self::Workers { free, waiting, running } => {
                running.pop();
                match waiting.pop_front() {
                    Some((call, work)) => running.push(Reverse(Due { at: at + work, call })),
                    None => *free += 1,
                }
            }
            Self::Shared { running, .. } => drop(running.pop()),
        }
    }

    /// How fast each call goes on.
    fn speed(&self) -> f64 {
        match self {
            Self::Workers { .. } => 1.0,
            Self::Shared { cores, running, .. } => (cores / running.len().max(1) as f64).min(1.0),
        }
    }

    fn advance(&mut self, at: f64) {
        let speed = self.speed();
        if let Self::Shared { now, done, .. } = self {
            *done += (at - *now) * speed;
            *now = at;
        }
    }
}
