use std::time::Duration;

use spillgate_policy::{Error, Outcome};
use tokio::time::Instant;

use crate::common::Span;
use crate::faults::node::{HOT, LimitKind, SHARE};

/// A call that was made, and what came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) limit: LimitKind,
    /// When it was to be made. How long it took counts from there.
    pub(crate) due: Instant,
    pub(crate) took: Duration,
    pub(crate) outcome: CallResult,
}

impl Call {
    /// True if Redis decided, and not a word of it that was remembered.
    pub(crate) fn is_by_redis(&self) -> bool {
        self.limit != LimitKind::Hot && self.outcome.is_by_redis()
    }
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallResult {
    /// Redis, at this moment of its time.
    Redis { now: u64, is_allowed: bool },
    /// The node itself, by its share.
    Share { is_allowed: bool },
    /// Nobody, and the call passed.
    Undecided,
    /// Nobody, and it was an error.
    Failed,
}

impl CallResult {
    pub(crate) fn of(checked: &Result<Outcome<'static>, Error>) -> Self {
        let Ok(outcome) = checked else { return Self::Failed };
        let is_allowed = outcome.is_allowed();
        match outcome.limits().next().map(|state| *state.decision()) {
            None => Self::Undecided,
            Some(decision) if decision.limit() == SHARE => Self::Share { is_allowed },
            Some(decision) => Self::Redis { now: decision.now().as_nanos(), is_allowed },
        }
    }

    pub(crate) fn is_by_redis(self) -> bool {
        matches!(self, Self::Redis { .. })
    }
}

/// All calls of a scene.
#[derive(Debug, Default)]
pub(crate) struct Calls(pub(crate) Vec<Call>);

impl Calls {
    /// Those that were due from one moment to another.
    pub(crate) fn between(&self, begin: Instant, end: Instant) -> Self {
        Self(self.0.iter().filter(|call| begin <= call.due && call.due < end).copied().collect())
    }

    /// How many have come out so, of a limit.
    pub(crate) fn count(&self, limit: LimitKind, is_so: impl Fn(CallResult) -> bool) -> usize {
        self.0.iter().filter(|call| call.limit == limit && is_so(call.outcome)).count()
    }

    /// The part of them that Redis was asked about and decided. Under the local limit a share
    /// decides as well for a while.
    pub(crate) fn by_redis(&self) -> f64 {
        let is_asked = |call: &&Call| matches!(call.limit, LimitKind::Open | LimitKind::Closed);
        let decided = self.0.iter().filter(is_asked).filter(|call| call.is_by_redis()).count();
        let asked = self.0.iter().filter(is_asked).count();
        decided as f64 / asked.max(1) as f64
    }

    /// How long all but one in a hundred took at most.
    pub(crate) fn p99(&self) -> Duration {
        let mut took: Vec<_> = self.0.iter().map(|call| call.took).collect();
        took.sort_unstable();
        took.get(took.len() * 99 / 100).copied().unwrap_or_default()
    }

    /// When Redis admitted the caller who asks for more than it has.
    pub(crate) fn admitted_hot(&self) -> Vec<u64> {
        let hot = self.0.iter().filter(|call| call.limit == LimitKind::Hot);
        let now = |call: &Call| match call.outcome {
            CallResult::Redis { now, is_allowed: true } => Some(now),
            _ => None,
        };
        hot.filter_map(now).collect()
    }

    /// How much it got beyond what it has.
    pub(crate) fn forgiven(&self) -> u64 {
        let spans: Vec<Span> = self.admitted_hot().iter().map(|now| (*now, *now)).collect();
        HOT.excess(&spans)
    }
}
