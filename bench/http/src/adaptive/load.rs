//! Loads a service with wrk, at a pace that does not depend on its answers.

use std::fs;
use std::process::{Child, Command, Stdio};

use nix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use super::samples::Samples;
use crate::Result;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/adaptive/load.lua");

/// The mean pause of a connection: so long that the time of an answer hardly matters.
const PAUSE_MILLIS: f64 = 500.0;

/// Requests from some time on, for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Seconds since the beginning.
    pub from: u32,
    pub seconds: u32,
    pub pace: Pace,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Requests per second, by as many connections as it takes.
    Rate(f64),
    /// So many connections, each of which waits for so many milliseconds after a response.
    Connections(u32, f64),
}

impl Pace {
    /// How many connections, and the mean pause of each in milliseconds.
    fn connections(self) -> (u32, f64) {
        match self {
            Self::Connections(count, pause) => (count, pause),
            Self::Rate(rate) => {
                let count = (rate * PAUSE_MILLIS / 1000.0).ceil().max(1.0);
                (count as u32, count / rate * 1000.0)
            }
        }
    }
}

/// Runs bursts, which may overlap, on one processor, and tells what clients have seen.
pub fn run(cpu: usize, url: &str, bursts: &[Burst]) -> Result<Samples> {
    let folder = TempDir::new()?;
    let file = |index: usize| folder.path().join(index.to_string());
    let begin = micros()?;
    let mut running = Vec::new();
    let mut order: Vec<_> = bursts.iter().enumerate().collect();
    order.sort_by_key(|(_, burst)| burst.from);
    for (index, burst) in order {
        let due = begin + u64::from(burst.from) * 1_000_000;
        std::thread::sleep(std::time::Duration::from_micros(due.saturating_sub(micros()?)));
        running.push(Wrk::start(cpu, url, burst, &file(index).display().to_string())?);
    }
    for wrk in running {
        wrk.wait()?;
    }
    let mut samples = Samples::default();
    for index in 0..bursts.len() {
        samples.read(&fs::read_to_string(file(index))?, begin)?;
    }
    Ok(samples)
}

/// Ends with this, if it has not by then.
struct Wrk(Child);

impl Wrk {
    fn start(cpu: usize, url: &str, burst: &Burst, file: &str) -> Result<Self> {
        let (connections, pause) = burst.pace.connections();
        let child = Command::new("taskset")
            .args(["-c", &cpu.to_string(), "wrk", "-t1", "--timeout", "60s"])
            .args([format!("-c{connections}"), format!("-d{}s", burst.seconds)])
            .args(["-s", SCRIPT, url, "--", file, &pause.to_string()])
            .stdout(Stdio::null())
            .spawn();
        Ok(Self(child.map_err(|error| format!("wrk cannot be run by taskset: {error}"))?))
    }

    fn wait(mut self) -> Result<()> {
        match self.0.wait()? {
            status if status.success() => Ok(()),
            status => Err(format!("wrk failed: {status}").into()),
        }
    }
}

impl Drop for Wrk {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The clock of the script.
fn micros() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() as u64 * 1_000_000 + now.tv_nsec() as u64 / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_all_connections_together() {
        for rate in [0.5, 100.0, 999.0] {
            let (count, pause) = Pace::Rate(rate).connections();
            assert!((f64::from(count) / pause * 1000.0 - rate).abs() < 1e-6, "{count} {pause}");
        }
        assert_eq!(Pace::Rate(1000.0).connections(), (500, 500.0));
    }
}
