use super::load;
use super::plan::{Plan, alone, saturated};
use super::samples::{Samples, Summary};
use super::subject::{Limit, Place, Subject};
use crate::Result;
use crate::cpus::Cpus;
use crate::report::{digits, progress};
use crate::results::Series;
use crate::settings::Settings;

/// What a service does without overload, in one round.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    /// Requests per second.
    pub capacity: f64,
    /// Latencies of single requests: ms.
    pub p50: f64,
    pub p99: f64,
}

/// The rounds of one service.
pub struct Lane {
    pub subject: Subject,
    pub plan: Plan,
    pub rounds: Vec<Round>,
    /// Of the last round, for the picture.
    pub samples: Samples,
}

/// A number of a round.
type Value = fn(&Round) -> f64;

/// What was seen in one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub baseline: Baseline,
    /// In the overload, once the limit had time to find its place.
    pub overload: Summary,
    /// Seconds after the overload until nearly everything was served in time.
    pub recovery: f64,
}

impl Baseline {
    pub fn measure(place: Place, cpus: Cpus, settings: &Settings) -> Result<Self> {
        // So many seconds that 99 of 100 is no single request.
        let seconds = if settings.picture.is_some() { 10 } else { 5 };
        let service = Subject::new(place, Limit::None).start(cpus, &settings.programs)?;
        load::run(cpus.client, &service.url, &saturated(1))?;
        let seen = |samples: &Samples| samples.within(0.5..f64::from(seconds), f64::MAX);
        let alone = seen(&load::run(cpus.client, &service.url, &alone(seconds))?);
        let capacity = seen(&load::run(cpus.client, &service.url, &saturated(seconds))?).served;
        let baseline = Self { capacity, p50: alone.p50, p99: alone.p99 };
        let [capacity, p50, p99] = [capacity, alone.p50, alone.p99].map(digits);
        progress(format_args!("{place}: {capacity}/s; alone: p50 {p50} ms, p99 {p99} ms"));
        Ok(baseline)
    }

    /// What comes later is of no use to whoever asked: ms.
    pub fn deadline(&self) -> f64 {
        self.p50 * 10.0
    }
}

impl Lane {
    /// Those that are asked for.
    pub fn wanted(settings: &Settings) -> Vec<Self> {
        let wanted = Subject::ALL.into_iter();
        let wanted = wanted.filter(|subject| settings.wants(&format!("adaptive {subject}")));
        let is_drawn = |subject: Subject| settings.picture.is_some() && subject.is_drawn();
        let plan = |subject| if is_drawn(subject) { Plan::DRAWN } else { Plan::SHORT };
        wanted.map(|subject| Self::new(subject, plan(subject))).collect()
    }

    pub fn new(subject: Subject, plan: Plan) -> Self {
        Self { subject, plan, rounds: Vec::new(), samples: Samples::default() }
    }

    pub fn take_turn(
        &mut self,
        baseline: &Baseline,
        cpus: Cpus,
        settings: &Settings,
    ) -> Result<()> {
        let service = self.subject.start(cpus, &settings.programs)?;
        let bursts = self.plan.bursts(baseline.capacity);
        self.samples = load::run(cpus.client, &service.url, &bursts)?;
        let (samples, deadline) = (&self.samples, baseline.deadline());
        let round = Round {
            baseline: *baseline,
            overload: samples.within(self.plan.settled(), deadline),
            recovery: samples.recovery(self.plan.after(), deadline),
        };
        self.rounds.push(round);
        Ok(())
    }

    pub fn each(&self, value: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(value).collect()
    }

    pub fn into_series(self) -> impl Iterator<Item = Series> {
        let subject = self.subject.to_string();
        let series: [(&str, &str, Value); 11] = [
            ("capacity", "1/s", |round| round.baseline.capacity),
            ("alone p50", "ms", |round| round.baseline.p50),
            ("alone p99", "ms", |round| round.baseline.p99),
            ("offered", "1/s", |round| round.overload.offered),
            ("served", "1/s", |round| round.overload.served),
            ("refused", "1/s", |round| round.overload.refused),
            ("failed", "1/s", |round| round.overload.failed),
            ("in time", "1/s", |round| round.overload.useful),
            ("p50", "ms", |round| round.overload.p50),
            ("p99", "ms", |round| round.overload.p99),
            ("recovery", "s", |round| round.recovery),
        ];
        series.into_iter().map(move |(what, unit, value)| Series {
            case: format!("adaptive {what}"),
            subject: subject.clone(),
            unit,
            rounds: self.each(value),
        })
    }
}
