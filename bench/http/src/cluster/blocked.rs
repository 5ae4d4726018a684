//! How many commands does a caller cost that goes on asking although it is denied?

use std::sync::Arc;
use std::time::{Duration, Instant};

use spillgate_policy::LimitCheck;
use tokio::task::JoinSet;

use super::bed::Bed;
use super::redis_cost::command;
use crate::Result;
use crate::report::{Table, digits, progress};
use crate::results::{Bound, Promise};
use crate::settings::Settings;

/// What became of one limit.
pub struct Blocked {
    limit: &'static str,
    /// How often it must be asked for at most: every so many seconds.
    every: f64,
    seconds: f64,
    calls: usize,
    commands: u64,
}

/// Limits, and how long one must wait for a token of them.
const LIMITS: [(&str, Duration); 2] =
    [("hourly", Duration::from_secs(3600)), ("rare", Duration::from_millis(500))];

const TASKS: usize = 16;

pub fn measure(bed: &Arc<Bed>, settings: &Settings) -> Result<Vec<Blocked>> {
    let long = Duration::from_secs(3 * u64::from(settings.seconds));
    LIMITS.into_iter().map(|(limit, wait)| ask(bed, limit, wait, long)).collect()
}

fn ask(bed: &Arc<Bed>, limit: &'static str, wait: Duration, long: Duration) -> Result<Blocked> {
    progress(format_args!("cluster: a caller that is blocked, {limit}"));
    // Spends the burst, and is denied once.
    for _ in 0..2 {
        let _ = bed.runtime.block_on(bed.gate.decide(&LimitCheck::new(limit, &["blocked"], 1)))?;
    }
    let (before, _) = command(bed, "evalsha")?;
    let begin = Instant::now();
    let calls = bed.runtime.block_on(async {
        let mut asking = JoinSet::new();
        for _ in 0..TASKS {
            asking.spawn(hammer(Arc::clone(bed), limit, begin + long));
        }
        asking.join_all().await.into_iter().sum::<std::result::Result<usize, String>>()
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let (after, _) = command(bed, "evalsha")?;
    let every = wait.min(Duration::from_secs(1)).as_secs_f64();
    Ok(Blocked { limit, every, seconds, calls, commands: after - before })
}

async fn hammer(bed: Arc<Bed>, limit: &str, end: Instant) -> std::result::Result<usize, String> {
    let mut calls = 0;
    while Instant::now() < end {
        let checked = bed.gate.decide(&LimitCheck::new(limit, &["blocked"], 1)).await;
        let _ = checked.map_err(|error| error.to_string())?;
        calls += 1;
    }
    Ok(calls)
}

impl Blocked {
    /// Commands for each that there may be.
    fn used(&self) -> f64 {
        // One more may fall on the beginning.
        self.commands as f64 / (self.seconds / self.every).ceil()
    }

    pub fn promise(&self) -> Promise {
        Promise {
            text: format!("{}: commands of a blocked caller every {} s", self.limit, self.every),
            value: self.used(),
            bound: Bound::AtMost(1.0),
            unit: "",
        }
    }
}

pub fn table(blocked: &[Blocked]) -> Table {
    let mut table = Table::new("A caller that is blocked", "limit");
    table.header.extend(["calls/s", "scripts/s", "promised"].map(str::to_owned));
    for row in blocked {
        let limit = match row.limit {
            "hourly" => "1/h",
            _ => "2/s burst 1",
        };
        table.rows.push(vec![
            limit.to_owned(),
            digits(row.calls as f64 / row.seconds),
            digits(row.commands as f64 / row.seconds),
            digits(1.0 / row.every),
        ]);
    }
    table.notes.push(format!("{TASKS} tasks that go on asking for one caller"));
    table
}
