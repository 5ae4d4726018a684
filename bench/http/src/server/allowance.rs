use std::fmt;
use std::time::Duration;

use crate::settings::number;

/// How many requests a limiter lets pass.
#[derive(Clone, Copy)]
pub enum Allowance {
    /// More than any server here can answer.
    Ample,
    /// So many, and then no more for an hour.
    Burst(u32),
}

impl Allowance {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "ample" { Ok(Self::Ample) } else { number(text).map(Self::Burst) }
    }

    /// What can be spent at once.
    pub fn burst(self) -> u32 {
        match self {
            Self::Ample => 1_000_000,
            Self::Burst(burst) => burst,
        }
    }

    /// The time in which one more request may pass.
    pub fn interval(self) -> Duration {
        match self {
            Self::Ample => Duration::from_nanos(100),
            Self::Burst(_) => Duration::from_secs(60 * 60),
        }
    }
}

/// What [`Allowance::parse`] understands.
impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ample => f.write_str("ample"),
            Self::Burst(burst) => burst.fmt(f),
        }
    }
}
