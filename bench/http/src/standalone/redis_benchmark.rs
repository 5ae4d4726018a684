//! Asks a server over the Redis protocol as often as it answers: redis-benchmark, which
//! comes with Redis.

use std::process::Command;

use super::contender::Call;
use crate::Result;

/// What redis-benchmark says about a run.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub per_second: f64,
    /// Below it are 99 of 100 replies: µs.
    pub p99: f64,
}

/// The command but for the port and the call, for the report.
pub const COMMAND: &str = "redis-benchmark -c 50 -r 100000 -n N -P 1 (or 16) --csv";

/// Calls `requests` times, on 50 connections with so many calls under way on each.
pub fn run(port: u16, pipeline: u32, requests: u64, call: Call) -> Result<Run> {
    let [port, pipeline, requests] =
        [u64::from(port), u64::from(pipeline), requests].map(|number| number.to_string());
    let output = Command::new("redis-benchmark")
        .args(["-p", &port, "-c", "50", "-r", "100000"])
        .args(["-n", &requests, "-P", &pipeline, "--csv"])
        .args(call)
        .output()
        .map_err(|error| format!("redis-benchmark cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // It complains of what a server does not know, which all but Redis may do.
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("redis-benchmark failed: {text}{errors}").into());
    }
    parse(&text).ok_or_else(|| format!("redis-benchmark says {text}, not understood here").into())
}

/// A line of names and a line of values, all in quotes.
fn parse(text: &str) -> Option<Run> {
    let mut lines =
        text.lines().map(|line| line.split("\",\"").map(|field| field.trim_matches('"')));
    let (names, values) = (lines.next()?, lines.next()?);
    let fields: Vec<_> = names.zip(values).collect();
    let field = |wanted: &str| {
        let (_, value) = fields.iter().find(|(name, _)| *name == wanted)?;
        value.parse::<f64>().ok()
    };
    Some(Run { per_second: field("rps")?, p99: field("p99_latency_ms")? * 1e3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"GET key:__rand_int__","553403.44","1.065","0.192","0.727","2.743","10.375","21.471"
"#;

    #[test]
    fn a_run_is_understood() {
        assert_eq!(parse(TEXT), Some(Run { per_second: 553_403.44, p99: 10_375.0 }));
    }

    #[test]
    fn other_texts_are_not_understood() {
        assert_eq!(parse("Error from server: ERR unknown command"), None);
        assert_eq!(parse(&TEXT.replace("rps", "qps")), None);
    }
}
