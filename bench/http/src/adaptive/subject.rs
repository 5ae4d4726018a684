//! The services that are overloaded: with and without a limit, by themselves and behind a proxy.

use std::env;
use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};

use tempfile::NamedTempFile;

use super::service::WORK;
use crate::Result;
use crate::cpus::Cpus;
use crate::process::{Process, free_port};
use crate::settings::Programs;

/// What a request costs the processor: ms.
pub const COST_MILLIS: u32 = 5;

/// Where a request is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// axum, with the layer.
    Axum,
    /// Python's own HTTP server, behind the proxy.
    Python,
}

/// What limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    None,
    Auto,
    Target,
    /// Concurrency by the load of the processor.
    Cpu,
    /// A rate by the load of the processor.
    CpuRate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    pub place: Place,
    pub limit: Limit,
}

/// A service that runs as long as this lives.
pub struct Running {
    _processes: Vec<Process>,
    _policy: Option<NamedTempFile>,
    pub url: String,
}

impl Subject {
    pub const ALL: [Self; 7] = [
        Self::new(Place::Axum, Limit::None),
        Self::new(Place::Axum, Limit::Auto),
        Self::new(Place::Axum, Limit::Target),
        Self::new(Place::Axum, Limit::Cpu),
        Self::new(Place::Axum, Limit::CpuRate),
        Self::new(Place::Python, Limit::None),
        Self::new(Place::Python, Limit::Auto),
    ];

    pub const fn new(place: Place, limit: Limit) -> Self {
        Self { place, limit }
    }

    /// Whether the picture shows it.
    pub fn is_drawn(self) -> bool {
        self.place == Place::Axum && matches!(self.limit, Limit::None | Limit::Auto)
    }

    /// Starts the service on its processor, and the proxy on that of the client.
    pub fn start(self, cpus: Cpus, programs: &Programs) -> Result<Running> {
        match self.place {
            Place::Axum => self.axum(cpus.server),
            Place::Python => self.python(cpus, programs),
        }
    }

    fn axum(self, cpu: usize) -> Result<Running> {
        let program = env::current_exe()?.display().to_string();
        let (cpu, cost) = (cpu.to_string(), COST_MILLIS.to_string());
        let policy = self.limit.policy().unwrap_or_default();
        let args = ["-c", &cpu, &program, "overload", &cost, &policy];
        let (process, output) = Process::start_and_listen("taskset", &args)?;
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output).read_line(&mut line)?;
        }
        let port: u16 = line.trim().parse().map_err(|_| format!("{self} did not start"))?;
        let url = format!("http://127.0.0.1:{port}{WORK}");
        Ok(Running { _processes: vec![process], _policy: None, url })
    }

    fn python(self, cpus: Cpus, programs: &Programs) -> Result<Running> {
        const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/adaptive/service.py");
        let (port, front) = (free_port()?, free_port()?);
        let (cpu, at, cost) = (cpus.server.to_string(), port.to_string(), COST_MILLIS.to_string());
        let args = ["-c", &cpu, "python3", SERVICE, &at, &cost];
        let service = Process::start("taskset", &args)?.once_it_listens("python3", &[port])?;
        let mut config = NamedTempFile::with_suffix(".toml")?;
        let controller = self.limit.upstream_controller().unwrap_or_default();
        write!(
            config,
            "[server]\nhttp = '127.0.0.1:0'\nlog-level = 'error'\n\
             [proxy]\nto = 'http://127.0.0.1:{port}'\nlisten = '127.0.0.1:{front}'\n{controller}\n\
             [[limit]]\nname = 'all'\nquota = '1000000/s'\n"
        )?;
        let path = config.path().display().to_string();
        let args =
            ["-c", &cpus.client.to_string(), &programs.spillgate, "proxy", "--config", &path];
        let proxy = Process::start("taskset", &args)?;
        let proxy = proxy.once_it_listens(&programs.spillgate, &[front])?;
        let url = format!("http://127.0.0.1:{front}{WORK}");
        Ok(Running { _processes: vec![proxy, service], _policy: Some(config), url })
    }
}

impl Limit {
    /// The policy of the layer.
    pub fn policy(self) -> Option<String> {
        let adaptive = match self {
            Self::None => return None,
            Self::Auto => "controller = \"auto\", min = 1, max = 500".to_owned(),
            // Three times what a request takes alone: less is exceeded at half the capacity.
            Self::Target => {
                let target = COST_MILLIS * 3;
                format!("controller = \"target\", target = \"{target}ms\", min = 1, max = 500")
            }
            Self::Cpu => "signal = \"process-cpu\", target = 0.9, min = 1, max = 500".to_owned(),
            Self::CpuRate => {
                "signal = \"process-cpu\", target = 0.9, min = \"10/s\", max = \"2000/s\""
                    .to_owned()
            }
        };
        let per = if self == Self::CpuRate { "per = \"global\"\n" } else { "" };
        Some(format!("[[limit]]\nname = \"service\"\n{per}adaptive = {{ {adaptive} }}\n"))
    }

    fn upstream_controller(self) -> Option<&'static str> {
        (self == Self::Auto).then_some("upstream-controller = 'auto'")
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no limit",
            Self::Auto => "auto",
            Self::Target => "target",
            Self::Cpu => "cpu",
            Self::CpuRate => "cpu, rate",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Axum => "axum",
            Self::Python => "proxy, Python",
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.place, self.limit)
    }
}
