//! Asks a server as often as it answers: <https://github.com/wg/wrk>.

use std::io::ErrorKind;
use std::process::Command;

use crate::Result;

/// How hard a server is asked.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    pub threads: u32,
    pub connections: u32,
    /// A Lua script that makes the requests.
    pub script: Option<&'a str>,
}

/// What wrk says about a run.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub requests: u64,
    pub per_second: f64,
    /// Below it is every other response: µs.
    pub p50: f64,
    /// Below it are 99 of 100 responses: µs.
    pub p99: f64,
    /// How many responses were not successful.
    pub refused: u64,
    /// What went wrong with connections.
    pub errors: Option<String>,
}

impl Run {
    /// Everything that went wrong, where nobody should be refused.
    pub fn flaw(&self) -> Option<String> {
        let refused = (self.refused != 0).then(|| format!("{REFUSED} {}", self.refused));
        let flaws: Vec<_> = self.errors.clone().into_iter().chain(refused).collect();
        (!flaws.is_empty()).then(|| flaws.join("; "))
    }
}

/// Asks for some seconds, without a pause. `args` are for the script.
pub fn run(load: &Load<'_>, url: &str, seconds: u32, args: &[&str]) -> Result<Run> {
    let script = load.script.map(|script| ["-s", script]);
    let mut command = Command::new("wrk");
    command.args(load.options(seconds)).args(script.iter().flatten()).arg(url).arg("--").args(args);
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            "wrk is missing: the script installs it, or apt-get install wrk".into()
        }
        _ => format!("wrk cannot be run: {error}"),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("wrk failed: {text}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    parse(&text).ok_or_else(|| format!("wrk says what is not understood here:\n{text}").into())
}

/// The command but for its script, for the report.
pub fn command(load: &Load<'_>, seconds: u32) -> String {
    format!("wrk {}", load.options(seconds).join(" "))
}

impl Load<'_> {
    fn options(&self, seconds: u32) -> [String; 4] {
        let (threads, connections) = (self.threads, self.connections);
        let latency = "--latency".to_owned();
        [format!("-t{threads}"), format!("-c{connections}"), format!("-d{seconds}s"), latency]
    }
}

/// Which wrk, as it says itself.
pub fn version() -> Option<String> {
    let output = Command::new("wrk").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.split(" Copyright").next()?.trim().to_owned())
}

/// What the line about responses that were not successful begins with.
const REFUSED: &str = "Non-2xx or 3xx responses:";

fn parse(text: &str) -> Option<Run> {
    let lines = || text.lines().map(str::trim);
    let after = |start: &str| lines().find_map(|line| line.strip_prefix(start));
    let requests = lines().find_map(|line| line.split_once(" requests in "))?.0;
    let refused = match after(REFUSED) {
        Some(count) => count.trim().parse().ok()?,
        None => 0,
    };
    Some(Run {
        requests: requests.parse().ok()?,
        per_second: after("Requests/sec:")?.trim().parse().ok()?,
        p50: micros(after("50%")?.trim())?,
        p99: micros(after("99%")?.trim())?,
        refused,
        errors: lines().find(|line| line.starts_with("Socket errors")).map(str::to_owned),
    })
}

/// A time such as `275.21us`.
fn micros(text: &str) -> Option<f64> {
    let unit = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let factor = match &text[unit..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        _ => return None,
    };
    Some(text[..unit].parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Running 3s test @ http://127.0.0.1:8080/hello
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   275.21us   81.24us   2.81ms   88.02%
    Req/Sec    57.12k     2.66k   60.05k    80.00%
  Latency Distribution
     50%  262.00us
     75%  300.00us
     90%  350.00us
     99%    1.51ms
  170573 requests in 3.00s, 21.80MB read
Requests/sec:  56789.01
Transfer/sec:      7.26MB
";

    #[test]
    fn a_run_is_understood() {
        let run = Run {
            requests: 170_573,
            per_second: 56_789.01,
            p50: 262.0,
            p99: 1510.0,
            refused: 0,
            errors: None,
        };
        assert_eq!(parse(TEXT), Some(run));
    }

    #[test]
    fn errors_are_reported() {
        assert_eq!(parse(TEXT).unwrap().flaw(), None);
        let refused = "Non-2xx or 3xx responses: 12";
        let errors = "Socket errors: connect 0, read 1, write 0, timeout 2";
        let text = TEXT.replace("Requests/sec", &format!("  {errors}\n  {refused}\nRequests/sec"));
        let run = parse(&text).unwrap();
        assert_eq!((run.refused, run.errors.as_deref()), (12, Some(errors)));
        assert_eq!(run.flaw(), Some(format!("{errors}; {refused}")));
    }

    #[test]
    fn other_texts_are_not_understood() {
        assert_eq!(parse("unable to connect"), None);
        assert_eq!(micros("12"), None);
        assert_eq!(micros("1h"), None);
    }
}
