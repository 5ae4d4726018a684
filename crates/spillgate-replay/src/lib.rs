#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod compare;
mod demand;
mod endpoint;
mod engine;
mod format;
mod input;
mod lines;
mod lockouts;
mod log;
mod log_clock;
mod record;
mod replay;
mod report;
mod series;
mod source;
mod suggest;
mod tally;
#[cfg(test)]
mod testing;
mod window;
mod zstd;

pub use self::engine::{Engine, EngineOptions};
pub use self::format::{LogFormat, Parser, Zone, detect};
pub use self::input::{Input, InputOptions, InputSummary};
pub use self::lines::MAX_LINE;
pub use self::record::{Headers, Record, Skip, Wanted};
pub use self::replay::{Replay, ReplayError};
pub use self::report::{
    Comparison, Count, DifferentCaller, Interval, LimitReport, LockoutReport, LogReport,
    NamedCounts, Report, SkippedLines,
};
pub use self::series::Series;
pub use self::source::Source;
pub use self::suggest::{Suggest, Suggestion};
