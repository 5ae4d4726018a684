use std::time::{Duration, Instant};

use super::contender::Contender;
use super::worker::{Worker, run_all};
use crate::Result;
use crate::results::Series;
use crate::settings::Settings;
use crate::stats::percentile;

/// One contender with so many streams, and what came of each round.
pub struct Lane {
    pub contender: Contender,
    /// How many calls are under way at a time.
    pub streams: usize,
    pub connections: usize,
    pub per_second: Vec<f64>,
    /// µs.
    pub p50: Vec<f64>,
    pub p99: Vec<f64>,
    /// CPU time of the server a call, user and system: µs.
    pub cpu: Vec<f64>,
}

/// How many streams there are, and on how many connections: as proxies have them, few, each of a
/// thread of its own, and no more streams on each than any server allows.
pub const STREAMS: [(usize, usize); 3] = [(1, 1), (50, 2), (500, 4)];

impl Lane {
    pub fn wanted(settings: &Settings) -> Vec<Self> {
        let lanes = STREAMS.into_iter().flat_map(|(streams, connections)| {
            Contender::ALL.map(|contender| Self::new(contender, streams, connections))
        });
        lanes.filter(|lane| settings.wants(&lane.name())).collect()
    }

    pub fn new(contender: Contender, streams: usize, connections: usize) -> Self {
        let (per_second, p50, p99, cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { contender, streams, connections, per_second, p50, p99, cpu }
    }

    fn name(&self) -> String {
        format!("grpc {} streams {}", self.streams, self.contender)
    }

    /// A new server each time: how lucky one is with its place in memory does not change
    /// while it runs, and should not decide about all rounds.
    pub fn take_turn(&mut self, settings: &Settings) -> Result<()> {
        let server = self.contender.start(&settings.programs)?;
        let turn = Duration::from_secs(settings.seconds.into());
        let connect = |_| Worker::connect(server.port, self.streams / self.connections);
        let workers = (0..self.connections).map(connect).collect::<Result<Vec<_>>>()?;
        run_all(&workers, self.contender, turn / 4)?;
        let (before, begin) = (server.process.cpu_micros()?, Instant::now());
        let took = run_all(&workers, self.contender, turn)?;
        let seconds = begin.elapsed().as_secs_f64();
        let cpu = server.process.cpu_micros()?.saturating_sub(before);
        self.per_second.push(took.len() as f64 / seconds);
        self.p50.push(percentile(&took, 0.5) / 1e3);
        self.p99.push(percentile(&took, 0.99) / 1e3);
        self.cpu.push(cpu as f64 / took.len() as f64);
        Ok(())
    }

    pub fn into_series(self) -> impl Iterator<Item = Series> {
        let rounds = [
            ("speed", "1/s", self.per_second),
            ("p50", "µs", self.p50),
            ("p99", "µs", self.p99),
            ("cpu", "µs", self.cpu),
        ];
        rounds.into_iter().map(move |(what, unit, rounds)| Series {
            case: format!("grpc {} streams {what}", self.streams),
            subject: self.contender.to_string(),
            unit,
            rounds,
        })
    }
}
