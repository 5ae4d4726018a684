//! Programs in processes of their own, so that their CPU time is nobody else's.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Result;

/// A program that runs as long as this lives, with whatever processes it has started.
pub struct Process {
    child: Child,
    end: Signal,
}

impl Process {
    /// Starts a program that has nothing to keep when it ends.
    pub fn start(path: &str, args: &[&str]) -> Result<Self> {
        Self::spawn(path, args, Stdio::null(), Signal::SIGKILL)
    }

    /// Starts a program that tells something first.
    pub fn start_and_listen(path: &str, args: &[&str]) -> Result<(Self, Option<ChildStdout>)> {
        let mut process = Self::spawn(path, args, Stdio::piped(), Signal::SIGKILL)?;
        let output = process.child.stdout.take();
        Ok((process, output))
    }

    /// Starts a program that has to end processes of its own when it ends.
    pub fn start_family(path: &str, args: &[&str]) -> Result<Self> {
        Self::spawn(path, args, Stdio::null(), Signal::SIGTERM)
    }

    /// `setpriv` has the kernel end the program if this process ends, however it does.
    fn spawn(path: &str, args: &[&str], output: Stdio, end: Signal) -> Result<Self> {
        let child = Command::new("setpriv")
            .args(["--pdeathsig", end.as_str().trim_start_matches("SIG"), path])
            .args(args)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn();
        match child {
            Ok(child) => Ok(Self { child, end }),
            Err(error) => Err(format!("{path} cannot be started by setpriv: {error}").into()),
        }
    }

    pub fn once_it_listens(mut self, path: &str, ports: &[u16]) -> Result<Self> {
        let begin = Instant::now();
        for port in ports {
            while TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err() {
                if let Some(status) = self.child.try_wait()? {
                    return Err(format!("{path} has ended: {status}").into());
                }
                if begin.elapsed() > Duration::from_secs(10) {
                    return Err(format!("{path} does not listen on port {port}").into());
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(self)
    }

    /// The CPU time of its processes since they began, of all threads, user and system: µs.
    pub fn cpu_micros(&self) -> Result<u64> {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let children = children.split_whitespace().map(cpu_micros);
        children.chain([cpu_micros(&pid.to_string())]).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).map(Pid::from_raw);
        let _ = pid.map(|pid| kill(pid, self.end));
        let _ = self.child.wait();
    }
}

fn cpu_micros(pid: &str) -> Result<u64> {
    // What the kernel calls USER_HZ, which programs see as 100 wherever this runs.
    const MICROS_A_TICK: u64 = 10_000;
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path)?;
    let ticks = ticks(&stat).ok_or_else(|| format!("{path} is not understood: {stat}"))?;
    Ok(ticks * MICROS_A_TICK)
}

/// User and system time, of what the kernel tells about a process.
fn ticks(stat: &str) -> Option<u64> {
    // The program's name stands in brackets, and may hold anything.
    let fields = stat.rsplit(')').next()?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

/// One that nobody listens on now.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added_whatever_the_program_is_called() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 7 5 0 0 20 0 1 0 1000";
        assert_eq!(ticks(stat), Some(12));
        assert_eq!(ticks("42 (a) S 1"), None);
    }

    #[test]
    fn a_family_is_counted_together_and_ends_together() {
        let script = "trap 'kill $!; exit' TERM; sh -c 'while :; do :; done' & wait";
        let family = Process::start_family("sh", &["-c", script]).unwrap();
        let (pid, begin) = (family.child.id(), Instant::now());
        while family.cpu_micros().unwrap_or(0) < 50_000 {
            assert!(begin.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(10));
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        drop(family);
        for child in children.split_whitespace() {
            while fs::exists(format!("/proc/{child}/cmdline")).unwrap() {
                assert!(begin.elapsed() < Duration::from_secs(60));
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}
