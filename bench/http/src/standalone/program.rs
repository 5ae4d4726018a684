use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::Result;
use crate::settings::Programs;

/// The servers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Tollgate,
    Redis,
    Throttlecrab,
}

/// A server that runs as long as this lives.
pub struct Running {
    child: Child,
    pub resp: u16,
    /// 0 if it does not speak HTTP.
    pub http: u16,
}

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/standalone/policy.toml");

impl Program {
    pub const ALL: [Self; 3] = [Self::Tollgate, Self::Redis, Self::Throttlecrab];

    pub fn path(self, programs: &Programs) -> &str {
        match self {
            Self::Tollgate => &programs.tollgate,
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
            Self::Tollgate => {
                let (resp, http) = ("127.0.0.1:0", "127.0.0.1:0");
                let args = ["serve", "--config", POLICY, "--resp", resp, "--http", http];
                let mut child = spawn(path, &args, Stdio::piped())?;
                let output = child.stdout.take();
                from_banner(Running { child, resp: 0, http: 0 }, output)
            }
            Self::Redis => {
                let args = ["--port", resp_text, "--bind", "127.0.0.1", "--save", ""];
                let args = [&args[..], &["--appendonly", "no"]].concat();
                let child = spawn(path, &args, Stdio::null())?;
                Running { child, resp, http: 0 }.once_it_listens(path)
            }
            Self::Throttlecrab => {
                let redis = ["--redis", "--redis-host", "127.0.0.1", "--redis-port", resp_text];
                let web = ["--http", "--http-host", "127.0.0.1", "--http-port", http_text];
                let args = [&redis[..], &web[..], &["--log-level", "error"]].concat();
                let child = spawn(path, &args, Stdio::null())?;
                Running { child, resp, http }.once_it_listens(path)
            }
        }
    }
}

/// `setpriv` has the kernel end the server if this process ends, however it does.
fn spawn(path: &str, args: &[&str], output: Stdio) -> Result<Child> {
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", path])
        .args(args)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn();
    child.map_err(|error| format!("{path} cannot be started by setpriv: {error}").into())
}

/// One that nobody listens on now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Tollgate chooses its ports itself and tells them in its first lines.
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
    Err("tollgate did not start, or did not say where it listens".into())
}

impl Running {
    fn once_it_listens(self, path: &str) -> Result<Self> {
        let begin = Instant::now();
        let ports = [self.resp, self.http];
        for port in ports.into_iter().filter(|port| *port != 0) {
            while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
                if begin.elapsed() > Duration::from_secs(10) {
                    return Err(format!("{path} does not listen on port {port}").into());
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(self)
    }

    /// Its CPU time since it began, of all its threads, user and system: µs.
    pub fn cpu_micros(&self) -> Result<u64> {
        // What the kernel calls USER_HZ, which programs see as 100 wherever this runs.
        const MICROS_A_TICK: u64 = 10_000;
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(&path)?;
        // The program's name stands in brackets, and may hold anything.
        let ticks = stat.rsplit(')').next().and_then(|fields| {
            let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
            Some(fields.next()?.ok()? + fields.next()?.ok()?)
        });
        Ok(ticks.ok_or_else(|| format!("{path} is not understood: {stat}"))? * MICROS_A_TICK)
    }
}

impl Drop for Running {
    /// None of them has anything to keep.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
