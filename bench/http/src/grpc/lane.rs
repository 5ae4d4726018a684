use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::connection::{Client, connect};
use super::contender::Contender;
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

/// How many streams there are, and on how many connections: as proxies have them, few, and no
/// more streams on each than any server allows.
pub const STREAMS: [(usize, usize); 3] = [(1, 1), (50, 2), (500, 4)];

/// How many keys there are.
const KEYS: usize = 100_000;

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
    pub fn take_turn(&mut self, runtime: &Runtime, settings: &Settings) -> Result<()> {
        let server = self.contender.start(&settings.programs)?;
        let turn = Duration::from_secs(settings.seconds.into());
        runtime.block_on(async {
            let mut clients = Vec::with_capacity(self.connections);
            for _ in 0..self.connections {
                clients.push(connect(server.port).await?);
            }
            self.run(&clients, turn / 4).await?;
            let (before, begin) = (server.process.cpu_micros()?, Instant::now());
            let took = self.run(&clients, turn).await?;
            let seconds = begin.elapsed().as_secs_f64();
            let cpu = server.process.cpu_micros()?.saturating_sub(before);
            self.per_second.push(took.len() as f64 / seconds);
            self.p50.push(percentile(&took, 0.5) / 1e3);
            self.p99.push(percentile(&took, 0.99) / 1e3);
            self.cpu.push(cpu as f64 / took.len() as f64);
            Ok(())
        })
    }

    /// Each stream asks one call after the other for some time. How long each took, in order of
    /// that: ns.
    async fn run(&self, clients: &[Client], turn: Duration) -> Result<Vec<u32>> {
        let keys: Arc<[String]> = (0..KEYS).map(|key| format!("key:{key:012}")).collect();
        let end = Instant::now() + turn;
        let mut asking = JoinSet::new();
        for client in clients.iter().cycle().take(self.streams) {
            asking.spawn(ask(self.contender, client.clone(), Arc::clone(&keys), end));
        }
        let mut took = Vec::new();
        while let Some(joined) = asking.join_next().await {
            took.extend(joined??);
        }
        took.sort_unstable();
        Ok(took)
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

async fn ask(
    contender: Contender,
    mut client: Client,
    keys: Arc<[String]>,
    end: Instant,
) -> std::result::Result<Vec<u32>, String> {
    let mut took = Vec::new();
    let mut begin = Instant::now();
    while begin < end {
        let key = &keys[fastrand::usize(..keys.len())];
        contender.ask(&mut client, key).await.map_err(|error| format!("{contender}: {error}"))?;
        let now = Instant::now();
        took.push(u32::try_from(now.duration_since(begin).as_nanos()).unwrap_or(u32::MAX));
        begin = now;
    }
    Ok(took)
}
