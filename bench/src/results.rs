//! What was measured, before it is turned into tables.

use std::fmt;

use crate::rounds::median;
use crate::workload::{Workload, short_count};

/// Everything that is measured in numbers.
#[derive(Clone, Copy, PartialEq)]
pub enum Case {
    Check(Workload),
    Insert { callers: u32, room: Room, threads: usize },
    BytesPerCaller { callers: u32 },
    WorstCheck { callers: u32, sweeping: bool },
    ClockRead,
    LiveEvictions { callers: u32, turnovers: Turnovers },
}

/// Where a new caller goes.
#[derive(Clone, Copy, PartialEq)]
pub enum Room {
    Empty,
    Full,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Turnovers {
    FirstTen,
    Eleventh,
}

/// The rounds of one contender under one case.
pub struct Measurement {
    pub case: Case,
    pub peer: &'static str,
    pub rounds: Vec<f64>,
    /// What is wrong with it: a limiter that does not limit is fast.
    pub flaw: Option<String>,
}

impl Measurement {
    pub fn median(&self) -> f64 {
        median(self.rounds.iter().copied())
    }
}

impl Case {
    pub fn unit(self) -> &'static str {
        match self {
            Self::Check(_) | Self::Insert { .. } | Self::ClockRead => "ns",
            Self::BytesPerCaller { .. } => "bytes",
            Self::WorstCheck { .. } => "µs",
            Self::LiveEvictions { .. } => "in 10,000",
        }
    }

    /// Whether it only shows how much of the others is noise.
    pub fn is_control(self) -> bool {
        matches!(self, Self::WorstCheck { sweeping, .. } if !sweeping)
    }

    /// The table it belongs to.
    pub fn table(self) -> String {
        match self {
            Self::Check(workload) => format!(
                "Check, all {}, callers: {}, threads: {}: ns",
                workload.outcome,
                short_count(workload.callers),
                workload.threads,
            ),
            Self::Insert { .. } => "First check of a new caller: ns".to_owned(),
            Self::BytesPerCaller { .. } => "Resident bytes per caller".to_owned(),
            Self::WorstCheck { .. } => {
                "Worst check while another thread removes stale callers: µs".to_owned()
            }
            Self::ClockRead => "The clock alone: ns a reading".to_owned(),
            Self::LiveEvictions { .. } => {
                "Callers evicted while they were live, in 10,000 first hits".to_owned()
            }
        }
    }

    /// What has to be said about the table.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            Self::Check(_) => None,
            Self::Insert { .. } => {
                Some("full table: spillgate evicts a caller for each new one, all others grow")
            }
            Self::BytesPerCaller { .. } => {
                Some("keys are included: spillgate keeps none, all others keep all")
            }
            Self::WorstCheck { .. } => Some(
                "spillgate need not be swept but can be; throttlecrab sweeps within a check; \
                 the others have nothing to sweep by",
            ),
            Self::ClockRead => None,
            Self::LiveEvictions { .. } => {
                Some("as many callers are live, always, as the limiter was built for")
            }
        }
    }

    /// Its column there.
    pub fn column(self) -> String {
        match self {
            Self::Check(Workload { access, pacing, .. }) => format!("{access} {pacing}"),
            Self::Insert { callers, room, threads } => {
                format!("{room}, {} callers, {threads}t", short_count(callers))
            }
            Self::BytesPerCaller { callers } => format!("at {}", short_count(callers)),
            Self::WorstCheck { sweeping, .. } => {
                if sweeping { "sweeping" } else { "quiet" }.to_owned()
            }
            Self::ClockRead => "ns".to_owned(),
            Self::LiveEvictions { turnovers, .. } => match turnovers {
                Turnovers::FirstTen => "turnovers 1 to 10",
                Turnovers::Eleventh => "turnover 11",
            }
            .to_owned(),
        }
    }
}

/// The name that `--only` is matched against and that the raw file gives.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(workload) => workload.fmt(f),
            Self::Insert { .. } => write!(f, "insert {}", self.column()),
            Self::BytesPerCaller { callers } => write!(f, "memory {}", short_count(*callers)),
            Self::WorstCheck { callers, .. } => {
                write!(f, "pause {} {}", short_count(*callers), self.column())
            }
            Self::ClockRead => f.write_str("clock"),
            Self::LiveEvictions { callers, .. } => {
                write!(f, "churn {} {}", short_count(*callers), self.column())
            }
        }
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty table",
            Self::Full => "full table",
        })
    }
}
