//! What is asked of a limiter: how many callers, in which order, with what answer.

use std::fmt;

use crate::keys::{Caller, KeySet};
use crate::random::Random;
use crate::terms::Terms;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    pub callers: u32,
    pub access: Access,
    pub outcome: Outcome,
    pub threads: usize,
    pub pacing: Pacing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Every caller as likely as any other.
    Uniform,
    /// The caller of rank `k` with a chance proportional to `1/k`.
    Zipf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Allowed,
    Denied,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// Checks follow each other directly, so their cache misses may overlap.
    Pipelined,
    /// Which key comes next depends on the last answer, so they may not.
    Isolated,
}

/// So many answers may be others than the workload means: a bounded limiter may
/// forget a caller now and then.
const TOLERATED_SHARE: f64 = 0.001;

impl Workload {
    /// All workloads over one population, which is what takes long to set up.
    pub fn family(callers: u32, outcome: Outcome) -> Vec<Self> {
        let mut family = Vec::new();
        for access in [Access::Uniform, Access::Zipf] {
            if callers == 1 && access == Access::Zipf {
                continue;
            }
            for threads in [1, 2] {
                for pacing in [Pacing::Pipelined, Pacing::Isolated] {
                    // Few callers stay in the cache: there is no miss to isolate.
                    if pacing == Pacing::Isolated && callers < 100_000 {
                        continue;
                    }
                    family.push(Self { callers, access, outcome, threads, pacing });
                }
            }
        }
        family
    }
}

impl Access {
    /// Keys in access order: enough of them that going round again meets a cold
    /// cache whenever the callers do not fit into it.
    pub fn keys(self, callers: u32) -> KeySet {
        let length = callers.saturating_mul(2).clamp(1 << 16, 10_000_000);
        let mut random = Random::seeded(u64::from(callers));
        match self {
            Self::Uniform => KeySet::new((0..length).map(|_| random.below(callers))),
            Self::Zipf => {
                let by_rank = scatter(callers, &mut random);
                let rank = |_| zipf_rank(callers, &mut random) as usize;
                KeySet::new((0..length).map(rank).map(|rank| by_rank[rank]))
            }
        }
    }
}

/// The callers in random order: popular ones should not be neighbours in memory
/// merely because they were inserted one after the other.
fn scatter(callers: u32, random: &mut Random) -> Vec<Caller> {
    let mut order: Vec<Caller> = (0..callers).collect();
    for last in (1..callers).rev() {
        order.swap(last as usize, random.below(last + 1) as usize);
    }
    order
}

/// A rank from 0 with a chance proportional to `1/(rank + 1)`.
///
/// The integer part of a log-uniform number has nearly that distribution; the
/// rejection makes it exact.
fn zipf_rank(callers: u32, random: &mut Random) -> u32 {
    let span = f64::from(callers + 1).ln();
    loop {
        let rank = (random.unit() * span).exp().floor();
        let excess = 1.0 / (rank * (1.0 / rank).ln_1p());
        if random.unit() * std::f64::consts::LOG2_E <= excess && rank <= f64::from(callers) {
            return rank as u32 - 1;
        }
    }
}

impl Outcome {
    pub fn terms(self) -> Terms {
        match self {
            Self::Allowed => Terms::GENEROUS,
            Self::Denied => Terms::STINGY,
        }
    }

    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }

    /// Whether so many admissions in so many checks are what was meant.
    pub fn is_met(self, allowed: u64, checks: u64) -> bool {
        let wrong = match self {
            Self::Allowed => checks - allowed,
            Self::Denied => allowed,
        };
        wrong as f64 <= checks as f64 * TOLERATED_SHARE
    }
}

/// 1, 1k, 100k, 1M.
pub fn short_count(count: u32) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let callers = short_count(self.callers);
        let Self { access, outcome, pacing, threads, .. } = self;
        write!(f, "check {callers} {access} {outcome} {pacing} {threads}t")
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
        })
    }
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipelined => "pipelined",
            Self::Isolated => "isolated",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_as_zipf_has_them() {
        const DRAWS: u32 = 1_000_000;
        let mut random = Random::seeded(1);
        let mut counts = [0_u32; 100];
        for _ in 0..DRAWS {
            counts[zipf_rank(100, &mut random) as usize] += 1;
        }
        let harmonic: f64 = (1..=100).map(|rank| 1.0 / f64::from(rank)).sum();
        for (rank, count) in (1..).zip(counts) {
            let expected = f64::from(DRAWS) / (f64::from(rank) * harmonic);
            let error = (f64::from(count) - expected).abs();
            assert!(error < 5.0 * expected.sqrt(), "{count} of rank {rank}, not {expected}");
        }
    }
}
