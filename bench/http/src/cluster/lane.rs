use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::bed::Bed;
use super::contender::Contender;
use super::redis_cost::command;
use crate::Result;
use crate::results::Series;
use crate::settings::Settings;
use crate::stats::percentile;

/// One contender at one concurrency, and what came of each round.
pub struct Lane {
    pub contender: Contender,
    /// How many calls are under way at a time.
    pub tasks: usize,
    pub per_second: Vec<f64>,
    /// µs.
    pub p50: Vec<f64>,
    pub p99: Vec<f64>,
    /// Scripts that Redis has run for each call.
    pub commands: Vec<f64>,
}

pub const TASKS: [usize; 4] = [1, 16, 64, 256];

/// What one task has done.
struct Done {
    calls: usize,
    /// ns.
    took: Vec<u32>,
}

impl Lane {
    pub fn wanted(settings: &Settings) -> Vec<Self> {
        let lanes = TASKS.into_iter().flat_map(|tasks| {
            Contender::ALL.into_iter().map(move |contender| Self {
                contender,
                tasks,
                per_second: Vec::new(),
                p50: Vec::new(),
                p99: Vec::new(),
                commands: Vec::new(),
            })
        });
        lanes.filter(|lane| settings.wants(&lane.name())).collect()
    }

    fn name(&self) -> String {
        format!("cluster {} tasks", self.tasks)
    }

    pub fn take_turn(&mut self, bed: &Arc<Bed>, settings: &Settings) -> Result<()> {
        let (before, _) = command(bed, "evalsha")?;
        let begin = Instant::now();
        let end = begin + settings.turn_of_cluster();
        let done = run(bed, self.contender, self.tasks, end)?;
        let seconds = begin.elapsed().as_secs_f64();
        let (after, _) = command(bed, "evalsha")?;
        let calls: usize = done.iter().map(|done| done.calls).sum();
        let mut took: Vec<u32> = done.into_iter().flat_map(|done| done.took).collect();
        took.sort_unstable();
        self.per_second.push(calls as f64 / seconds);
        self.p50.push(percentile(&took, 0.5) / 1e3);
        self.p99.push(percentile(&took, 0.99) / 1e3);
        self.commands.push((after - before) as f64 / calls as f64);
        Ok(())
    }

    pub fn into_series(self) -> Vec<Series> {
        let case = self.name();
        let series = |what: &str, unit, rounds| Series {
            case: format!("{case} {what}"),
            subject: self.contender.to_string(),
            unit,
            rounds,
        };
        vec![
            series("speed", "1/s", self.per_second),
            series("p50", "µs", self.p50),
            series("p99", "µs", self.p99),
            series("scripts per call", "1", self.commands),
        ]
    }
}

/// So many tasks ask one call after the other until the end.
fn run(bed: &Arc<Bed>, contender: Contender, tasks: usize, end: Instant) -> Result<Vec<Done>> {
    bed.runtime.block_on(async {
        let mut asking = JoinSet::new();
        for task in 0..tasks {
            asking.spawn(ask(Arc::clone(bed), contender, task, end));
        }
        let mut done = Vec::with_capacity(tasks);
        while let Some(joined) = asking.join_next().await {
            done.push(joined??);
        }
        Ok(done)
    })
}

async fn ask(
    bed: Arc<Bed>,
    contender: Contender,
    task: usize,
    end: Instant,
) -> std::result::Result<Done, String> {
    let mut client = bed.client.clone();
    let mut done = Done { calls: 0, took: Vec::new() };
    let mut begin = Instant::now();
    while begin < end {
        for _ in 0..contender.timed() {
            let turn = contender.turn(task, done.calls);
            contender.ask(&bed, &mut client, turn).await.map_err(|error| error.to_string())?;
            done.calls += 1;
        }
        let now = Instant::now();
        let took = now.duration_since(begin).as_nanos() / contender.timed() as u128;
        done.took.push(u32::try_from(took).unwrap_or(u32::MAX));
        begin = now;
    }
    Ok(done)
}
