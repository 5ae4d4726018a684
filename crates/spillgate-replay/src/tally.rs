//! What a replay counts, in memory that does not grow with the log.

use std::hash::BuildHasher;

use spillgate::{HeavyHitters, KeyedState, Timestamp};
use spillgate_policy::{Answer, Caller, Mode, Outcome};

use crate::Record;
use crate::endpoint;
use crate::engine::Engine;
use crate::lockouts::{Lockouts, Run};
use crate::series::Series;

/// How many callers and endpoints are kept. Counts are then exact to 2 / 8192 of all refusals.
const KEPT: usize = 8192;

/// All counts of one policy.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// By [`answer`].
    pub(crate) answers: [u64; 6],
    /// Allowed requests that a limit in shadow mode would have denied.
    pub(crate) shadow_denied: u64,
    /// Requests that the log itself shows as refused with 429.
    pub(crate) refused_in_log: u64,
    pub(crate) span: Option<(Timestamp, Timestamp)>,
    pub(crate) limits: Vec<LimitTally>,
    pub(crate) callers: HeavyHitters<CallerTally>,
    pub(crate) endpoints: HeavyHitters<EndpointTally>,
    pub(crate) series: Series,
    pub(crate) lockouts: Lockouts,
    hasher: KeyedState,
    endpoint: Vec<u8>,
}

/// Counts of one limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitTally {
    pub(crate) met: u64,
    pub(crate) denied: u64,
    pub(crate) shadow_denied: u64,
    /// The most callers that were below their full quota when it was looked.
    pub(crate) peak_callers: u64,
    pub(crate) evictions: u64,
}

/// A caller that was refused.
#[derive(Clone, Debug)]
pub(crate) struct CallerTally {
    pub(crate) name: String,
    pub(crate) refused: u64,
    pub(crate) allowed: u64,
    pub(crate) run: Option<Run>,
}

/// An endpoint of which requests were refused.
#[derive(Clone, Debug)]
pub(crate) struct EndpointTally {
    pub(crate) name: String,
    pub(crate) refused: u64,
    pub(crate) allowed: u64,
}

/// The names of answers, by place.
pub(crate) const ANSWERS: [&str; 6] =
    ["allowed", "denied", "blocked", "banned", "shed", "host required"];

fn answer(answer: Answer) -> usize {
    match answer {
        Answer::Allowed => 0,
        Answer::Blocked => 2,
        Answer::Banned => 3,
        Answer::Shed => 4,
        Answer::HostRequired => 5,
        _ => 1,
    }
}

impl Tally {
    pub(crate) fn new(limits: usize) -> Self {
        Self {
            requests: 0,
            answers: [0; 6],
            shadow_denied: 0,
            refused_in_log: 0,
            span: None,
            limits: vec![LimitTally::default(); limits],
            callers: HeavyHitters::new(KEPT),
            endpoints: HeavyHitters::new(KEPT),
            series: Series::default(),
            lockouts: Lockouts::default(),
            hasher: KeyedState::new(),
            endpoint: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn count(
        &mut self,
        record: &Record<'_>,
        now: Timestamp,
        caller: &Caller<'_>,
        outcome: &Outcome<'_>,
    ) {
        self.requests += 1;
        self.refused_in_log += u64::from(record.status == 429);
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
        self.answers[answer(outcome.answer())] += 1;
        let is_allowed = outcome.is_allowed();
        self.series.add(now, is_allowed);
        let mut is_shadow_denied = false;
        for limit in outcome.limits() {
            let counts = &mut self.limits[limit.place()];
            counts.met += 1;
            if limit.decision().is_denied() {
                match limit.mode() {
                    Mode::Shadow => {
                        counts.shadow_denied += 1;
                        is_shadow_denied = true;
                    }
                    _ => counts.denied += 1,
                }
            }
        }
        self.shadow_denied += u64::from(is_shadow_denied && is_allowed);
        endpoint::write(record, &mut self.endpoint);
        let endpoint = self.hasher.hash_one(&self.endpoint);
        let caller_hash = match caller {
            Caller::Ip(address) => self.hasher.hash_one(address),
            caller => self.hasher.hash_one(caller),
        };
        match is_allowed {
            true => self.count_allowed(caller_hash, endpoint),
            false => self.count_refused(now, caller, caller_hash, endpoint),
        }
    }

    #[inline]
    fn count_allowed(&mut self, caller: u64, endpoint: u64) {
        if let Some(caller) = self.callers.get_mut(caller) {
            caller.allowed += 1;
            if let Some(run) = caller.run.take() {
                self.lockouts.note(&caller.name, &run);
            }
        }
        if let Some(endpoint) = self.endpoints.get_mut(endpoint) {
            endpoint.allowed += 1;
        }
    }

    fn count_refused(&mut self, now: Timestamp, caller: &Caller<'_>, hash: u64, endpoint: u64) {
        let kept = self.callers.add(hash, || CallerTally {
            name: caller.to_string(),
            refused: 0,
            allowed: 0,
            run: None,
        });
        kept.refused += 1;
        kept.run.get_or_insert(Run::new(now)).extend(now);
        let text = &self.endpoint;
        let kept = self.endpoints.add(endpoint, || EndpointTally {
            name: String::from_utf8_lossy(text).into_owned(),
            refused: 0,
            allowed: 0,
        });
        kept.refused += 1;
    }

    /// Looks at how full the tables are. Visits every caller, so only now and then.
    pub(crate) fn look_at_tables(&mut self, engine: &Engine) {
        for (counts, summary) in self.limits.iter_mut().zip(engine.gate().limits()) {
            counts.peak_callers = counts.peak_callers.max(summary.callers.unwrap_or(0));
            counts.evictions = summary.evictions.unwrap_or(0);
        }
    }

    /// Notes lock-outs that last at the end of the log.
    pub(crate) fn finish(&mut self) {
        for caller in self.callers.values_mut() {
            if let Some(run) = caller.run.take() {
                self.lockouts.note(&caller.name, &run);
            }
        }
    }
}
