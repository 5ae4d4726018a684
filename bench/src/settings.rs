//! What to measure and how long, as the command line has it.

use std::path::PathBuf;
use std::time::Duration;

use crate::roster::{Candidate, ROSTER};
use crate::rounds::Schedule;

pub const USAGE: &str = "\
Measures spillgate against other in-memory rate limiters.

  --quick        fewer callers, rounds and milliseconds: two to three minutes
  --rounds N     rounds of each measurement (at least 9 unless --quick)
  --only TEXT    only cases whose name contains TEXT, such as `check 1M uniform`,
                 `insert`, `memory`, `pause`, `clock`, `churn` or `probe`
  --peers A,B    only these peers
  --out DIR      where the results go (default: bench/results)
  --help         this text";

pub struct Settings {
    pub schedule: Schedule,
    /// Population sizes of the check workloads.
    pub sizes: Vec<u32>,
    /// The population of the other measurements.
    pub population: u32,
    /// Populations whose memory is weighed.
    pub weights: Vec<u32>,
    pub candidates: Vec<Candidate>,
    pub only: Option<String>,
    pub out: PathBuf,
}

/// What the command line asks for.
pub enum Command {
    Measure(Settings),
    /// Weigh one peer in this process and print the result.
    Weigh {
        peer: String,
        callers: u32,
    },
    Help,
}

impl Settings {
    fn full() -> Self {
        Self {
            schedule: Schedule { rounds: 9, turn: Duration::from_millis(80) },
            sizes: vec![1, 1_000, 100_000, 1_000_000, 10_000_000],
            population: 1_000_000,
            weights: vec![1_000_000, 10_000_000],
            candidates: ROSTER.to_vec(),
            only: None,
            out: PathBuf::from("bench/results"),
        }
    }

    fn quick() -> Self {
        Self {
            schedule: Schedule { rounds: 3, turn: Duration::from_millis(25) },
            sizes: vec![1, 100_000, 1_000_000],
            population: 200_000,
            weights: vec![1_000_000],
            ..Self::full()
        }
    }

    /// Whether a case of this name is asked for.
    pub fn wants(&self, case: impl ToString) -> bool {
        let name = case.to_string();
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// The candidates that are limiters of their own.
    pub fn limiters(&self) -> Vec<Candidate> {
        self.candidates.iter().copied().filter(Candidate::is_limiter).collect()
    }

    pub fn has_peer(&self, name: &str) -> bool {
        self.candidates.iter().any(|candidate| candidate.name == name)
    }
}

impl Command {
    pub fn parse(args: &[String]) -> Result<Self, String> {
        if let [flag, peer, callers] = args
            && flag == "--weigh"
        {
            let peer = peer.clone();
            let callers = number(callers)?;
            return Ok(Self::Weigh { peer, callers });
        }
        let is_quick = args.iter().any(|arg| arg == "--quick");
        let mut settings = if is_quick { Settings::quick() } else { Settings::full() };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or(format!("{flag} needs a value"));
            match flag.as_str() {
                "--quick" => {}
                "--rounds" => settings.schedule.rounds = number(value()?)?,
                "--only" => settings.only = Some(value()?.clone()),
                "--peers" => settings.candidates = candidates(value()?)?,
                "--out" => settings.out = PathBuf::from(value()?),
                "--help" | "-h" => return Ok(Self::Help),
                _ => return Err(format!("unknown option {flag}; try --help")),
            }
        }
        if settings.schedule.rounds < 9 && !is_quick {
            return Err("medians of fewer than 9 rounds are for --quick".to_owned());
        }
        Ok(Self::Measure(settings))
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a number that can be used here"))
}

fn candidates(names: &str) -> Result<Vec<Candidate>, String> {
    for name in names.split(',') {
        candidate(name)?;
    }
    let is_named = |candidate: &Candidate| names.split(',').any(|name| name == candidate.name);
    Ok(ROSTER.into_iter().filter(is_named).collect())
}

pub fn candidate(name: &str) -> Result<Candidate, String> {
    ROSTER.into_iter().find(|candidate| candidate.name == name).ok_or_else(|| {
        let known = ROSTER.map(|candidate| candidate.name).join(", ");
        format!("no peer is called {name}; there are {known}")
    })
}
