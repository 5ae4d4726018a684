use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use spillgate::{Clock, SystemClock, Timestamp};
use spillgate_policy::{PolicyFile, parse_duration};
use spillgate_replay::{
    EngineOptions, InputOptions, InputSummary, LogFormat, Replay as Replayed, Source, Suggest, Zone,
};

use super::print;

/// Replay access logs against a policy
///
/// Shows what the policy would have allowed and denied: by limit, time, caller and endpoint, and
/// the longest lock-outs. Logs of nginx, Apache, Caddy, Traefik, Envoy, HAProxy, AWS and JSON or
/// CSV with named columns are recognised, also compressed; several are read in the order of time:
///
///   spillgate replay --policy spillgate.toml access.log.2.gz access.log.1 access.log
///   ssh web zstdcat access.log.zst | spillgate replay --policy spillgate.toml -
///
/// Who is treated differently by another policy:
///
///   spillgate replay --policy spillgate.toml --compare new.toml access.log
///
/// Propose quotas with which 99.9 % of the callers in the log are never denied, and prove it:
///
///   spillgate replay --suggest access.log > new.toml
///   spillgate replay --policy new.toml access.log
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Replay {
    /// Policy, or configuration file
    #[arg(long, short, value_name = "FILE", required_unless_present = "suggest")]
    policy: Option<PathBuf>,
    /// Logs; - reads standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Another policy, to find who is treated differently
    #[arg(long, value_name = "FILE", conflicts_with = "suggest")]
    compare: Option<PathBuf>,
    /// Print a policy with quotas made from the log
    #[arg(long, conflicts_with_all = ["html", "json", "csv"])]
    suggest: bool,
    /// Share of callers that a suggestion never denies, in percent
    #[arg(long, value_name = "PERCENT", default_value = "99.9", value_parser = percent)]
    never_denied: f64,
    /// Log format; detected by default
    #[arg(long, value_name = "NAME", value_parser = LogFormat::from_name)]
    format: Option<LogFormat>,
    /// Time zone of logs that do not name one, such as +02:00 or Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "Z", value_parser = zone)]
    zone: Zone,
    /// How far lines may be out of order
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    window: Duration,
    /// Host of requests in logs that do not name it
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Count requests by the user that the log names
    #[arg(long)]
    users: bool,
    /// Also write the report as HTML
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the report as CSV
    #[arg(long)]
    csv: bool,
}

/// One limit for everything: what a suggestion begins with if there is no policy.
const PLAIN: &str = "[[limit]]\nname = \"all\"\nquota = \"10/s\"\n";

impl Replay {
    pub(super) fn run(self) -> Result<(), Box<dyn Error>> {
        let logs = self.logs.iter().map(|path| {
            Source::open(path)
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))
        });
        let logs = logs.collect::<Result<Vec<_>, _>>()?;
        let policy = match &self.policy {
            Some(path) => PolicyFile::read(path)?,
            None => PolicyFile::from_text(PLAIN),
        };
        let mut input = InputOptions::default();
        (input.format, input.zone) = (self.format, self.zone);
        input.window = self.window.as_secs();
        // Clocks differ by less than a day.
        input.latest = SystemClock.now() + Duration::from_secs(86_400);
        let mut engine = EngineOptions::default();
        (engine.host, engine.counts_users) = (self.host, self.users);
        let mut progress = Progress::new();
        if self.suggest {
            let suggest = Suggest::new(policy).never_denied(self.never_denied / 100.0);
            let suggest = suggest.input(input).engine(engine);
            let suggestion = suggest.run(logs, |input| progress.show(input));
            progress.clear();
            return print(&suggestion?.text);
        }
        let mut replay = Replayed::new(policy.policy()?).input(input).engine(engine);
        if let Some(other) = self.compare {
            replay = replay.compare(PolicyFile::read(other)?.policy()?);
        }
        let report = replay.run(logs, |input| progress.show(input));
        progress.clear();
        let report = report?;
        if let Some(path) = &self.html {
            std::fs::write(path, report.to_html()?)
                .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        match (self.json, self.csv) {
            (true, _) => print(&(report.to_json()? + "\n")),
            (_, true) => print(&report.to_csv()),
            _ => print(&report.to_string()),
        }
    }
}

/// A bar on standard error, if that is a terminal.
struct Progress {
    is_shown: bool,
    begin: Timestamp,
    last: Timestamp,
}

impl Progress {
    fn new() -> Self {
        let now = SystemClock.now();
        Self { is_shown: std::io::stderr().is_terminal(), begin: now, last: now }
    }

    fn show(&mut self, input: &InputSummary) {
        let now = SystemClock.now();
        if !self.is_shown || now.since(self.last) < Duration::from_millis(100) {
            return;
        }
        self.last = now;
        let line = bar(input, now.since(self.begin).as_secs_f64());
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Share, rate, and time left if the size is known.
fn bar(input: &InputSummary, seconds: f64) -> String {
    let rate = input.lines as f64 / seconds.max(0.001);
    let counted = format!("{} lines, {rate:.0}/s", input.lines);
    match input.total_bytes.filter(|total| *total > 0) {
        None => counted,
        Some(total) => {
            let share = (input.bytes as f64 / total as f64).clamp(0.0, 1.0);
            let left = seconds * (1.0 - share) / share.max(0.001);
            let full = (share * 30.0) as usize;
            let bar = format!("{}{}", "#".repeat(full), "·".repeat(30 - full));
            format!("[{bar}] {:3.0} %  {counted}, {left:.0} s left", share * 100.0)
        }
    }
}

fn zone(text: &str) -> Result<Zone, &'static str> {
    Zone::parse(text.as_bytes())
        .ok_or("write Z, +02:00, -0500 or the name of a place, such as Europe/Berlin")
}

fn percent(text: &str) -> Result<f64, &'static str> {
    let percent: f64 = text.parse().map_err(|_| "write a number such as 99.9")?;
    (0.0..=100.0).contains(&percent).then_some(percent).ok_or("write a number from 0 to 100")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_share_rate_and_time_left() {
        let mut input = InputSummary::default();
        (input.lines, input.bytes) = (3000, 50);
        assert_eq!(bar(&input, 1.5), "3000 lines, 2000/s");
        input.total_bytes = Some(100);
        let half = format!("{}{}", "#".repeat(15), "·".repeat(15));
        assert_eq!(bar(&input, 1.5), format!("[{half}]  50 %  3000 lines, 2000/s, 2 s left"));
    }
}
