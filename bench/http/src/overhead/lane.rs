use std::time::Instant;

use crate::Result;
use crate::child::Server;
use crate::cpus::{Cpus, pin};
use crate::kind::Kind;
use crate::results::Series;
use crate::server::Allowance;
use crate::stats::differences;
use crate::wrk::{self, Load};

/// One thread, as the server has.
pub const LOAD: Load<'static> = Load { threads: 1, connections: 32, script: None };

/// The rounds of one server.
pub struct Lane {
    pub kind: Kind,
    /// CPU time per request, user and system: µs.
    pub cpu: Vec<f64>,
    /// Requests per second.
    pub throughput: Vec<f64>,
    /// The latency that 99 of 100 requests have at most: µs.
    pub p99: Vec<f64>,
    /// How much of the time the server's thread ran: %.
    pub busy: Vec<f64>,
    /// What went wrong: every request must have been answered, and none refused.
    pub flaws: Vec<String>,
}

impl Lane {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            cpu: Vec::new(),
            throughput: Vec::new(),
            p99: Vec::new(),
            busy: Vec::new(),
            flaws: Vec::new(),
        }
    }

    /// A new server each time: how lucky one is with its place in memory does not change
    /// while it runs, and should not decide about all rounds.
    pub fn take_turn(&mut self, cpus: Cpus, seconds: u32) -> Result<()> {
        pin(cpus.server)?;
        let server = Server::start(self.kind, Allowance::Ample)?;
        pin(cpus.client)?;
        let url = server.url();
        wrk::run(&LOAD, &url, 1, &[])?;
        let (before, begin) = (server.cpu_micros()?, Instant::now());
        let run = wrk::run(&LOAD, &url, seconds, &[])?;
        let (after, wall) = (server.cpu_micros()?, begin.elapsed());
        let cpu = after.saturating_sub(before) as f64;
        self.cpu.push(cpu / run.requests as f64);
        self.throughput.push(run.per_second);
        self.p99.push(run.p99);
        self.busy.push(100.0 * cpu / wall.as_micros() as f64);
        self.flaws.extend(run.flaw());
        Ok(())
    }

    /// What a request costs above one of `base`, round by round: µs.
    pub fn cpu_over(&self, base: &Self) -> Vec<f64> {
        differences(&self.cpu, &base.cpu)
    }

    pub fn into_series(self) -> impl Iterator<Item = Series> {
        let rounds = [
            ("cpu", "µs", self.cpu),
            ("throughput", "1/s", self.throughput),
            ("p99", "µs", self.p99),
            ("busy", "%", self.busy),
        ];
        rounds.into_iter().map(move |(what, unit, rounds)| Series {
            case: format!("http {what}"),
            subject: self.kind.to_string(),
            unit,
            rounds,
        })
    }
}

pub fn find(lanes: &[Lane], kind: Kind) -> Option<&Lane> {
    lanes.iter().find(|lane| lane.kind == kind)
}

/// Each server of Spillgate with the other limiter's that it is compared with.
pub fn rivals(lanes: &[Lane]) -> impl Iterator<Item = (&Lane, &Lane)> {
    lanes.iter().filter_map(|lane| Some((lane, find(lanes, lane.kind.rival()?)?)))
}
