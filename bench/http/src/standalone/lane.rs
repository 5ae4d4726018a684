use std::fmt;

use super::contender::{Ask, Call, Contender, Request};
use super::program::Running;
use super::redis_benchmark;
use crate::Result;
use crate::results::Series;
use crate::settings::Settings;
use crate::stats::ratios;
use crate::wrk::{self, Load};

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Over the Redis protocol, with so many calls under way on each connection.
    Resp {
        pipeline: u32,
    },
    Http,
}

/// The rounds of one contender, asked in one way.
pub struct Lane {
    pub contender: &'static Contender,
    pub way: Way,
    /// Requests per second.
    pub throughput: Vec<f64>,
    /// The latency that 99 of 100 requests have at most: µs.
    pub p99: Vec<f64>,
    /// CPU time of the server a request, user and system: µs.
    pub cpu: Vec<f64>,
    /// What went wrong: every request must have been answered.
    pub flaws: Vec<String>,
}

/// What a client says about a run.
struct Run {
    per_second: f64,
    p99: f64,
    requests: u64,
    flaw: Option<String>,
}

impl Way {
    pub const ALL: [Self; 3] =
        [Self::Resp { pipeline: 1 }, Self::Resp { pipeline: 16 }, Self::Http];

    /// Whether this is how to ask it.
    fn suits(self, contender: &Contender) -> bool {
        matches!(
            (self, contender.ask),
            (Self::Resp { .. }, Ask::Resp { .. }) | (Self::Http, Ask::Http { .. })
        )
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resp { pipeline } => write!(f, "resp -P {pipeline}"),
            Self::Http => f.write_str("http"),
        }
    }
}

impl Lane {
    /// Every contender in every way that suits it, if it is asked for.
    pub fn wanted(settings: &Settings) -> Vec<Self> {
        let lanes = |way: Way| {
            let suits = super::contender::ALL.iter().filter(move |contender| way.suits(contender));
            suits.map(move |contender| Self::new(contender, way))
        };
        let is_wanted = |lane: &Self| settings.wants(&lane.name());
        Way::ALL.into_iter().flat_map(lanes).filter(is_wanted).collect()
    }

    fn new(contender: &'static Contender, way: Way) -> Self {
        let (throughput, p99, cpu, flaws) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { contender, way, throughput, p99, cpu, flaws }
    }

    fn name(&self) -> String {
        format!("server {} {}", self.way, self.contender.name)
    }

    /// A new server each time: how lucky one is with its place in memory does not change
    /// while it runs, and should not decide about all rounds.
    pub fn take_turn(&mut self, settings: &Settings) -> Result<()> {
        let seconds = settings.seconds;
        let server = self.contender.program.start(&settings.programs)?;
        let (cpu, run) = match (self.contender.ask, self.way) {
            (Ask::Resp { call, .. }, Way::Resp { pipeline }) => {
                let count = self.warm_up(&server, pipeline, call)? * f64::from(seconds);
                measure(&server, || resp(&server, pipeline, count as u64, call))
            }
            (Ask::Http { request, .. }, Way::Http) => {
                http(&server, request, 1)?;
                measure(&server, || http(&server, request, seconds))
            }
            _ => return Err(format!("{} cannot be asked", self.name()).into()),
        }?;
        self.throughput.push(run.per_second);
        self.p99.push(run.p99);
        self.cpu.push(cpu / run.requests as f64);
        self.flaws.extend(run.flaw);
        Ok(())
    }

    /// What a contender needs, and some calls to see how many it answers per second:
    /// redis-benchmark takes a number of calls, not a duration.
    fn warm_up(&self, server: &Running, pipeline: u32, call: Call) -> Result<f64> {
        // Of a hundred thousand random keys this leaves out one in three thousand.
        const TO_FILL: u64 = 800_000;
        const TO_SEE: u64 = 20_000;
        if let Some(call) = self.contender.prepare {
            resp(server, 16, TO_FILL, call)?;
        }
        Ok(resp(server, pipeline, TO_SEE, call)?.per_second)
    }

    /// How many times as many requests as `other` it answers, round by round.
    pub fn times(&self, other: &Self) -> Vec<f64> {
        ratios(&self.throughput, &other.throughput)
    }

    pub fn into_series(self) -> impl Iterator<Item = Series> {
        let rounds = [
            ("throughput", "1/s", self.throughput),
            ("p99", "µs", self.p99),
            ("cpu", "µs", self.cpu),
        ];
        rounds.into_iter().map(move |(what, unit, rounds)| Series {
            case: format!("server {} {what}", self.way),
            subject: self.contender.name.to_owned(),
            unit,
            rounds,
        })
    }
}

/// The server's CPU time in a run, in µs, and what the client says about it.
fn measure(server: &Running, run: impl FnOnce() -> Result<Run>) -> Result<(f64, Run)> {
    let before = server.cpu_micros()?;
    let run = run()?;
    Ok((server.cpu_micros()?.saturating_sub(before) as f64, run))
}

fn resp(server: &Running, pipeline: u32, requests: u64, call: Call) -> Result<Run> {
    let redis_benchmark::Run { per_second, p99 } =
        redis_benchmark::run(server.resp, pipeline, requests, call)?;
    Ok(Run { per_second, p99, requests, flaw: None })
}

/// As many connections as redis-benchmark has, and a thread for each of two processors.
pub const HTTP: Load<'static> = Load { threads: 2, connections: 50, script: Some(SCRIPT) };

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/standalone/keys.lua");

fn http(server: &Running, request: Request, seconds: u32) -> Result<Run> {
    let Request { method, path, body, headers } = request;
    let url = format!("http://127.0.0.1:{}", server.http);
    let args = [&[method, path, body], headers].concat();
    let run = wrk::run(&HTTP, &url, seconds, &args)?;
    Ok(Run { per_second: run.per_second, p99: run.p99, requests: run.requests, flaw: run.flaw() })
}
