//! What to measure and how long, as the command line has it.

use std::path::PathBuf;
use std::time::Duration;

use crate::kind::Kind;
use crate::server::Allowance;

pub const USAGE: &str = "\
Measures what Spillgate costs a request of an axum server, beside tower_governor, and
what a policy costs a decision; how much `spillgate serve` answers, beside Redis and
throttlecrab-server, and over gRPC; how much `spillgate proxy` passes on, beside nginx;
what it costs to share limits through Redis; or what adaptive limits do for a service that is asked for
five times as much as it can do.

  scripts/bench-http [http | policy] [OPTIONS]
  scripts/bench-server [OPTIONS]
  scripts/bench-grpc [OPTIONS]
  scripts/bench-proxy [OPTIONS]
  scripts/bench-cluster [OPTIONS]
  scripts/bench-adaptive [OPTIONS]

  http           only the axum servers: some six minutes
  policy         only decisions within this process: less than a minute

  --quick        fewer and shorter rounds: a minute
  --rounds N     rounds of each measurement (at least 10 unless --quick)
  --only TEXT    only what has TEXT in its name: `probe`, `http spillgate`,
                 `router`, `policy limits`, `policy block v6`, `policy met`;
                 `server resp`, `resp -P 16`, `/v1/check`; `grpc 50 streams`;
                 `proxy small`, `proxy refused`; `cluster 64 tasks`;
                 `adaptive axum`, `axum, auto`
  --picture FILE where bench-adaptive draws (default: docs/adaptive.svg; nothing with --quick)
  --out DIR      where the results go (default: bench/results)
  --help         this text";

/// The least number of rounds that is not a first impression.
const ROUNDS: usize = 10;

pub struct Settings {
    pub scope: Scope,
    pub rounds: usize,
    /// How long wrk asks a server in each round. It knows whole seconds only.
    pub seconds: u32,
    /// How long a gate decides in each round.
    pub turn: Duration,
    only: Option<String>,
    pub out: PathBuf,
    /// Where an overload is drawn.
    pub picture: Option<PathBuf>,
    pub programs: Programs,
}

/// Where the servers are that the scripts have built.
pub struct Programs {
    pub spillgate: String,
    pub throttlecrab: String,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    Http,
    Policy,
    /// Servers that stand alone, which have to be built before.
    Server,
    /// The same over gRPC.
    Grpc,
    /// What passes requests on.
    Proxy,
    /// Limits that are shared through Redis.
    Cluster,
    /// Services under overload.
    Adaptive,
}

/// What the command line asks for.
pub enum Command {
    Measure(Settings),
    /// Be a server until the standard input ends.
    Serve(Kind, Allowance),
    /// Be a service to overload, whose requests cost so much, with a policy.
    Overload(Duration, String),
    Help,
}

impl Settings {
    fn full() -> Self {
        Self {
            scope: Scope::All,
            rounds: ROUNDS,
            seconds: 3,
            turn: Duration::from_millis(80),
            only: None,
            out: PathBuf::from("bench/results"),
            picture: Some(PathBuf::from("docs/adaptive.svg")),
            programs: Programs {
                spillgate: "target/dist/spillgate".to_owned(),
                throttlecrab: "target/peers/bin/throttlecrab-server".to_owned(),
            },
        }
    }

    fn quick() -> Self {
        let turn = Duration::from_millis(15);
        Self { rounds: 3, seconds: 1, turn, picture: None, ..Self::full() }
    }

    /// How long a contender asks Redis in each round.
    pub fn turn_of_cluster(&self) -> Duration {
        Duration::from_millis(250) * self.seconds
    }

    /// Whether something of this name is asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}

impl Scope {
    pub fn has_http(self) -> bool {
        matches!(self, Self::All | Self::Http)
    }

    pub fn has_policy(self) -> bool {
        matches!(self, Self::All | Self::Policy)
    }

    /// What the script and the files of a run are called.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::All | Self::Http => ("scripts/bench-http", "http"),
            Self::Policy => ("scripts/bench-http", "policy"),
            Self::Server => ("scripts/bench-server", "server"),
            Self::Grpc => ("scripts/bench-grpc", "grpc"),
            Self::Proxy => ("scripts/bench-proxy", "proxy"),
            Self::Cluster => ("scripts/bench-cluster", "cluster"),
            Self::Adaptive => ("scripts/bench-adaptive", "adaptive"),
        }
    }
}

impl Command {
    pub fn parse(args: &[String]) -> Result<Self, String> {
        if let [serve, kind, allowance] = args
            && serve == "serve"
        {
            return Ok(Self::Serve(Kind::parse(kind)?, Allowance::parse(allowance)?));
        }
        if let [overload, millis, policy] = args
            && overload == "overload"
        {
            return Ok(Self::Overload(Duration::from_millis(number(millis)?), policy.clone()));
        }
        let is_quick = args.iter().any(|arg| arg == "--quick");
        let mut settings = if is_quick { Settings::quick() } else { Settings::full() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "http" => settings.scope = Scope::Http,
                "policy" => settings.scope = Scope::Policy,
                "server" => settings.scope = Scope::Server,
                "grpc" => settings.scope = Scope::Grpc,
                "proxy" => settings.scope = Scope::Proxy,
                "cluster" => settings.scope = Scope::Cluster,
                // One takes minutes, and looks at thousands of requests.
                "adaptive" => (settings.scope, settings.rounds) = (Scope::Adaptive, 1),
                "--spillgate" => settings.programs.spillgate.clone_from(value()?),
                "--throttlecrab" => settings.programs.throttlecrab.clone_from(value()?),
                "--quick" => {}
                "--rounds" => settings.rounds = number(value()?)?,
                "--only" => settings.only = Some(value()?.clone()),
                "--picture" => settings.picture = Some(PathBuf::from(value()?)),
                "--out" => settings.out = PathBuf::from(value()?),
                "--help" | "-h" => return Ok(Self::Help),
                _ => return Err(format!("{arg} is not known here; try --help")),
            }
        }
        let least = if is_quick || settings.scope == Scope::Adaptive { 1 } else { ROUNDS };
        if settings.rounds < least {
            return Err(format!("medians of fewer than {ROUNDS} rounds are for --quick"));
        }
        Ok(Self::Measure(settings))
    }
}

pub fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a number that can be used here"))
}
