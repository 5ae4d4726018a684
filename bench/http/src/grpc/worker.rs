use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::connection::{Client, connect};
use super::contender::Contender;
use crate::Result;

/// A thread's worth of a client: one connection, and the streams on it.
pub struct Worker {
    runtime: Runtime,
    client: Client,
    streams: usize,
}

/// How many keys there are.
const KEYS: usize = 100_000;

impl Worker {
    pub fn connect(port: u16, streams: usize) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(connect(port))?;
        Ok(Self { runtime, client, streams })
    }

    /// Asks so many times, one call after the other, and tells which have passed.
    pub fn ask(&mut self, contender: Contender, key: &str, calls: usize) -> Result<Vec<bool>> {
        self.runtime.block_on(async {
            let mut passed = Vec::with_capacity(calls);
            for _ in 0..calls {
                passed.push(contender.ask(&mut self.client, key).await?);
            }
            Ok(passed)
        })
    }

    fn run(&self, contender: Contender, keys: &Arc<[String]>, end: Instant) -> Asked {
        self.runtime.block_on(async {
            let mut asking = JoinSet::new();
            for _ in 0..self.streams {
                asking.spawn(ask(contender, self.client.clone(), Arc::clone(keys), end));
            }
            let mut took = Vec::new();
            while let Some(joined) = asking.join_next().await {
                took.extend(joined.map_err(|error| error.to_string())??);
            }
            Ok(took)
        })
    }
}

/// How long each call took: ns. Or why there was no answer.
type Asked = std::result::Result<Vec<u32>, String>;

/// Each stream of each worker asks one call after the other for some time. How long each call
/// took, the shortest first: ns.
pub fn run_all(workers: &[Worker], contender: Contender, turn: Duration) -> Result<Vec<u32>> {
    let keys: Arc<[String]> = (0..KEYS).map(|key| format!("key:{key:012}")).collect();
    let end = Instant::now() + turn;
    let asked: Vec<_> = thread::scope(|scope| {
        let run = |worker| {
            let keys = &keys;
            scope.spawn(move || Worker::run(worker, contender, keys, end))
        };
        let running: Vec<_> = workers.iter().map(run).collect();
        running.into_iter().map(|worker| worker.join()).collect()
    });
    let mut took = Vec::new();
    for asked in asked {
        took.extend(asked.map_err(|_| "a thread of the client has failed")??);
    }
    took.sort_unstable();
    Ok(took)
}

async fn ask(contender: Contender, mut client: Client, keys: Arc<[String]>, end: Instant) -> Asked {
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
