//! Replays logs against one policy, or two.

use std::io;

use spillgate_policy::{Error, Policy};

use crate::compare::Differences;
use crate::engine::{Engine, EngineOptions};
use crate::input::{Input, InputSummary};
use crate::report::Report;
use crate::tally::Tally;
use crate::{InputOptions, Record, Source, Wanted};

/// It is looked at how full the tables are after so many requests at least, and a quarter of the
/// capacities: then looking costs some nanoseconds per request.
const LOOK_AFTER: u64 = 4096;

/// What to replay, and how.
///
/// ```
/// use spillgate_policy::Policy;
/// use spillgate_replay::{Replay, Source};
///
/// let log = br#"203.0.113.7 - - [17/Nov/2026:04:32:40 +0000] "POST /login HTTP/1.1" 401 12
/// 203.0.113.7 - - [17/Nov/2026:04:32:41 +0000] "POST /login HTTP/1.1" 401 12
/// "#;
/// let policy = Policy::from_toml("[[limit]]\nname = 'all'\nquota = '1/min'")?;
/// let log = Source::new("access.log", &log[..], None)?;
/// let report = Replay::new(policy).run(vec![log], |_| ())?;
/// assert_eq!((report.allowed, report.refused), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replay {
    policy: Policy,
    other: Option<Policy>,
    input: InputOptions,
    engine: EngineOptions,
}

/// A policy with what is counted.
struct Side {
    policy: Option<Policy>,
    engine: Option<Engine>,
    tally: Tally,
    /// After how many requests it is looked at the tables.
    look_every: u64,
}

impl Replay {
    /// Replays against this policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let (input, engine) = Default::default();
        Self { policy, other: None, input, engine }
    }

    /// Also replays against another policy, to find who is treated differently.
    #[must_use]
    pub fn compare(self, other: Policy) -> Self {
        Self { other: Some(other), ..self }
    }

    /// How the logs are read.
    #[must_use]
    pub fn input(self, input: InputOptions) -> Self {
        Self { input, ..self }
    }

    /// What the logs do not say.
    #[must_use]
    pub fn engine(self, engine: EngineOptions) -> Self {
        Self { engine, ..self }
    }

    /// Replays logs, and calls `progress` now and then.
    ///
    /// # Errors
    ///
    /// If a log cannot be read or its format is unknown, or there is not enough memory for the
    /// capacities of the limits.
    pub fn run(
        self,
        logs: Vec<Source>,
        progress: impl FnMut(&InputSummary),
    ) -> Result<Report, ReplayError> {
        let wanted = wanted(std::iter::once(&self.policy).chain(&self.other));
        let input = Input::new(logs, &wanted, self.input)?;
        let mut first = Side::new(self.policy);
        let mut second = self.other.map(Side::new);
        let mut differences = second.as_ref().map(|_| Differences::new());
        let options = self.engine;
        let each = |record: &Record<'_>| -> Result<(), ReplayError> {
            let is_allowed = first.decide(record, &wanted, &options, |_, _| ())?.0;
            if let (Some(second), Some(differences)) = (&mut second, &mut differences) {
                second.decide(record, &wanted, &options, |caller, second| {
                    differences.count(caller, is_allowed, second);
                })?;
            }
            Ok(())
        };
        let summary = input.read(each, progress)?;
        first.finish();
        let mut report = Report::new(summary, &first.tally, first.engine.as_ref());
        if let (Some(mut second), Some(differences)) = (second, differences) {
            second.finish();
            report.compare(&second.tally, second.engine.as_ref(), &differences);
        }
        Ok(report)
    }
}

/// The headers that any of the policies reads.
pub(crate) fn wanted<'p>(policies: impl Iterator<Item = &'p Policy>) -> Wanted {
    let names: Vec<_> = policies.flat_map(|policy| policy.headers().collect::<Vec<_>>()).collect();
    Wanted::new(names)
}

impl Side {
    fn new(policy: Policy) -> Self {
        let tally = Tally::new(policy.limits().count());
        Self { policy: Some(policy), engine: None, tally, look_every: LOOK_AFTER }
    }

    /// Decides and counts a request. Returns whether it is allowed.
    #[inline]
    fn decide<T>(
        &mut self,
        record: &Record<'_>,
        wanted: &Wanted,
        options: &EngineOptions,
        look: impl FnOnce(&spillgate_policy::Caller<'_>, bool) -> T,
    ) -> Result<(bool, T), ReplayError> {
        if let Some(policy) = self.policy.take() {
            // Limits that start empty count from the first request on.
            let engine = Engine::new(policy, wanted.clone(), record.time, options.clone())?;
            let capacity: usize = engine.gate().limits().iter().map(|limit| limit.capacity).sum();
            self.look_every = LOOK_AFTER.max(capacity as u64 / 4);
            self.engine = Some(engine);
        }
        let Some(engine) = &mut self.engine else { return Err(io::Error::other("no gate").into()) };
        let tally = &mut self.tally;
        let decided = engine.decide(record, |now, caller, outcome| {
            tally.count(record, now, caller, outcome);
            let is_allowed = outcome.is_allowed();
            (is_allowed, look(caller, is_allowed))
        })?;
        if tally.requests.is_multiple_of(self.look_every) {
            tally.look_at_tables(engine);
        }
        Ok(decided)
    }

    fn finish(&mut self) {
        self.tally.finish();
        if let Some(engine) = &self.engine {
            self.tally.look_at_tables(engine);
        }
    }
}

/// Why a replay failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// A log could not be read.
    Log(io::Error),
    /// The gate could not be built, or could not decide.
    Gate(Error),
}

impl From<io::Error> for ReplayError {
    fn from(error: io::Error) -> Self {
        Self::Log(error)
    }
}

impl From<Error> for ReplayError {
    fn from(error: Error) -> Self {
        Self::Gate(error)
    }
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::Gate(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}
