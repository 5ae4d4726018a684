use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command};

use crate::Result;
use crate::process::{Process, free_port};
use crate::settings::Programs;

/// The servers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Spillgate,
    Redis,
    Throttlecrab,
}

/// A server that runs as long as this lives.
pub struct Running {
    process: Process,
    pub resp: u16,
    /// 0 if it does not speak HTTP.
    pub http: u16,
}

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/standalone/policy.toml");

impl Program {
    pub const ALL: [Self; 3] = [Self::Spillgate, Self::Redis, Self::Throttlecrab];

    pub fn path(self, programs: &Programs) -> &str {
        match self {
            Self::Spillgate => &programs.spillgate,
            Self::Redis => "redis-server",
            Self::Throttlecrab => &programs.throttlecrab,
        }
    }

    /// As it says itself.
    pub fn version(self, programs: &Programs) -> Option<String> {
        let output = Command::new(self.path(programs)).arg("--version").output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.split(" sha=").next()?.trim().to_owned())
    }

    /// Starts it on free ports, as it comes but that it writes no files, and waits until it
    /// listens.
    pub fn start(self, programs: &Programs) -> Result<Running> {
        let path = self.path(programs);
        let (resp, http) = (free_port()?, free_port()?);
        let (resp_text, http_text) = (&resp.to_string(), &http.to_string());
        match self {
            Self::Spillgate => Self::serve(programs, POLICY, &[]),
            Self::Redis => {
                let args = ["--port", resp_text, "--bind", "127.0.0.1", "--save", ""];
                let args = [&args[..], &["--appendonly", "no"]].concat();
                let process = Process::start(path, &args)?.once_it_listens(path, &[resp])?;
                Ok(Running { process, resp, http: 0 })
            }
            Self::Throttlecrab => {
                let redis = ["--redis", "--redis-host", "127.0.0.1", "--redis-port", resp_text];
                let web = ["--http", "--http-host", "127.0.0.1", "--http-port", http_text];
                let args = [&redis[..], &web[..], &["--log-level", "error"]].concat();
                let process = Process::start(path, &args)?.once_it_listens(path, &[resp, http])?;
                Ok(Running { process, resp, http })
            }
        }
    }
}

impl Program {
    /// Starts Spillgate with a policy, and more arguments.
    pub fn serve(programs: &Programs, policy: &str, more: &[&str]) -> Result<Running> {
        let (resp, http) = ("127.0.0.1:0", "127.0.0.1:0");
        let args = ["serve", "--config", policy, "--resp", resp, "--http", http];
        let path = Self::Spillgate.path(programs);
        let (process, output) = Process::start_and_listen(path, &[&args[..], more].concat())?;
        from_banner(Running { process, resp: 0, http: 0 }, output)
    }
}

/// Spillgate chooses its ports itself and tells them in its first lines.
fn from_banner(mut running: Running, output: Option<ChildStdout>) -> Result<Running> {
    let lines = output.map(BufReader::new).into_iter().flat_map(BufRead::lines);
    for line in lines {
        let line = line?;
        let port = line.rsplit(':').next().and_then(|port| port.parse().ok());
        match (line.trim().split("://").next().unwrap_or_default(), port) {
            (start, Some(port)) if start.starts_with("http ") => running.http = port,
            (start, Some(port)) if start.starts_with("redis ") => running.resp = port,
            _ => {}
        }
        if running.http != 0 && running.resp != 0 {
            return Ok(running);
        }
    }
    Err("spillgate did not start, or did not say where it listens".into())
}

impl Running {
    /// Its CPU time since it began, of all its threads, user and system: µs.
    pub fn cpu_micros(&self) -> Result<u64> {
        self.process.cpu_micros()
    }
}
