use std::fmt;

use tempfile::TempDir;

use super::nginx::{self, Nginx, Upstream};
use crate::Result;
use crate::process::{Process, free_port};
use crate::settings::Programs;

/// What stands between the client and the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    Direct,
    NginxPlain,
    NginxLimit,
    Spillgate,
}

/// What is asked for, and how much of it passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Small,
    Large,
    Refused,
}

/// A contender that runs as long as this lives.
pub struct Front {
    /// Nothing if the upstream itself is asked.
    process: Option<Process>,
    /// What it has for itself.
    _folder: Option<TempDir>,
    pub port: u16,
}

impl Case {
    pub const ALL: [Self; 3] = [Self::Small, Self::Large, Self::Refused];

    pub fn path(self) -> &'static str {
        match self {
            Self::Small | Self::Refused => nginx::SMALL,
            Self::Large => nginx::LARGE,
        }
    }

    /// How many requests an address may make a second, and how many at once.
    pub fn quota(self) -> (u32, u32) {
        match self {
            // More than can be asked for.
            Self::Small | Self::Large => (1_000_000, 1_000_000),
            Self::Refused => (10, 20),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Small => "small",
            Self::Large => "100 KB",
            Self::Refused => "refused",
        })
    }
}

impl Contender {
    pub const ALL: [Self; 4] = [Self::Direct, Self::NginxPlain, Self::NginxLimit, Self::Spillgate];

    /// Whether it has something to say in this case: not everyone refuses.
    pub fn suits(self, case: Case) -> bool {
        case != Case::Refused || matches!(self, Self::NginxLimit | Self::Spillgate)
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Self::Direct => "the upstream itself, which is nginx with one worker",
            Self::NginxPlain => "`proxy_pass` with `keepalive`, a worker for each processor",
            Self::NginxLimit => "the same with `limit_req` by address",
            Self::Spillgate => "`spillgate proxy --limit`, as it comes",
        }
    }

    pub fn start(self, case: Case, upstream: &Upstream, programs: &Programs) -> Result<Front> {
        let (rate, burst) = case.quota();
        match self {
            Self::Direct => Ok(Front::new(None, None, upstream.port())),
            Self::NginxPlain => nginx(upstream, None),
            Self::NginxLimit => nginx(upstream, Some((rate, burst))),
            Self::Spillgate => {
                let port = free_port()?;
                let (to, listen) = (upstream.url(), format!("127.0.0.1:{port}"));
                let limit = format!("{rate}/s burst {burst}");
                let args = ["proxy", "--to", &to, "--limit", &limit, "--listen", &listen];
                let args = [&args[..], &["--http", "127.0.0.1:0", "--log-level", "error"]].concat();
                let path = &programs.spillgate;
                let process = Process::start(path, &args)?.once_it_listens(path, &[port])?;
                Ok(Front::new(Some(process), None, port))
            }
        }
    }
}

fn nginx(upstream: &Upstream, quota: Option<(u32, u32)>) -> Result<Front> {
    let Nginx { process, folder, port } = nginx::front(upstream, quota)?;
    Ok(Front::new(Some(process), Some(folder), port))
}

impl Front {
    fn new(process: Option<Process>, folder: Option<TempDir>, port: u16) -> Self {
        Self { process, _folder: folder, port }
    }

    /// The CPU time of the contender since it began: µs.
    pub fn cpu_micros(&self) -> Result<u64> {
        self.process.as_ref().map_or(Ok(0), Process::cpu_micros)
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::NginxPlain => "nginx",
            Self::NginxLimit => "nginx limit_req",
            Self::Spillgate => "spillgate proxy",
        })
    }
}
