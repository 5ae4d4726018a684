use super::contender::{Case, Contender};
use super::nginx::Upstream;
use crate::Result;
use crate::results::Series;
use crate::settings::Settings;
use crate::wrk::{self, Load};

/// The rounds of one contender in one case.
pub struct Lane {
    pub contender: Contender,
    pub case: Case,
    /// Requests per second.
    pub throughput: Vec<f64>,
    /// µs.
    pub p50: Vec<f64>,
    pub p99: Vec<f64>,
    /// CPU time of the contender's processes per request, user and system: µs.
    pub cpu: Vec<f64>,
    /// What went wrong.
    pub flaws: Vec<String>,
}

/// Client, proxy and upstream share whatever processors are there.
pub const LOAD: Load<'static> = Load { threads: 2, connections: 64, script: None };

impl Lane {
    /// Every contender in every case that suits it, if it is asked for.
    pub fn wanted(settings: &Settings) -> Vec<Self> {
        let lanes = |case: Case| {
            let suits = Contender::ALL.into_iter().filter(move |contender| contender.suits(case));
            suits.map(move |contender| Self::new(contender, case))
        };
        let is_wanted = |lane: &Self| settings.wants(&lane.name());
        Case::ALL.into_iter().flat_map(lanes).filter(is_wanted).collect()
    }

    pub fn new(contender: Contender, case: Case) -> Self {
        let (throughput, p50, p99) = (Vec::new(), Vec::new(), Vec::new());
        Self { contender, case, throughput, p50, p99, cpu: Vec::new(), flaws: Vec::new() }
    }

    fn name(&self) -> String {
        format!("proxy {} {}", self.case, self.contender)
    }

    /// A new proxy each time: how lucky one is with its place in memory does not change
    /// while it runs, and should not decide about all rounds.
    pub fn take_turn(&mut self, upstream: &Upstream, settings: &Settings) -> Result<()> {
        let front = self.contender.start(self.case, upstream, &settings.programs)?;
        let url = format!("http://127.0.0.1:{}{}", front.port, self.case.path());
        wrk::run(&LOAD, &url, 1, &[])?;
        let before = front.cpu_micros()?;
        let run = wrk::run(&LOAD, &url, settings.seconds, &[])?;
        let cpu = front.cpu_micros()?.saturating_sub(before) as f64;
        self.throughput.push(run.per_second);
        self.p50.push(run.p50);
        self.p99.push(run.p99);
        self.cpu.push(cpu / run.requests as f64);
        self.flaws.extend(flaw(self.case, &run, settings.seconds));
        Ok(())
    }

    pub fn into_series(self) -> impl Iterator<Item = Series> {
        let rounds = [
            ("throughput", "1/s", self.throughput),
            ("p50", "µs", self.p50),
            ("p99", "µs", self.p99),
            ("cpu", "µs", self.cpu),
        ];
        rounds.into_iter().map(move |(what, unit, rounds)| Series {
            case: format!("proxy {} {what}", self.case),
            subject: self.contender.to_string(),
            unit,
            rounds,
        })
    }
}

/// What should not have been: all must pass, or no more than the quota.
fn flaw(case: Case, run: &wrk::Run, seconds: u32) -> Option<String> {
    if case != Case::Refused {
        return run.flaw();
    }
    let (rate, burst) = case.quota();
    // wrk takes some time to begin and to end.
    let most = u64::from(rate * (seconds + 1) + burst);
    let passed = run.requests.saturating_sub(run.refused);
    let too_many = (passed > most).then(|| format!("{passed} passed, {most} at most should have"));
    run.errors.clone().or(too_many)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(refused: u64) -> wrk::Run {
        let (per_second, p50, p99) = (1000.0, 1.0, 2.0);
        wrk::Run { requests: 1000, per_second, p50, p99, refused, errors: None }
    }

    #[test]
    fn a_refusal_is_a_flaw_where_all_must_pass() {
        assert_eq!(flaw(Case::Small, &run(0), 1), None);
        assert!(flaw(Case::Small, &run(1), 1).is_some());
    }

    #[test]
    fn more_than_the_quota_is_a_flaw_where_most_are_refused() {
        assert_eq!(flaw(Case::Refused, &run(960), 1), None);
        assert!(flaw(Case::Refused, &run(959), 1).is_some());
        assert!(flaw(Case::Refused, &run(0), 3).is_some());
    }
}
