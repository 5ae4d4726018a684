//! A server in a process of its own, so that its CPU time is nobody else's.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::Result;
use crate::client::{self, Response};
use crate::kind::Kind;
use crate::server::{Allowance, HELLO, USAGE};

pub struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts it, and waits until it listens.
    pub fn start(kind: Kind, allowance: Allowance) -> Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args(["serve", kind.name(), &allowance.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let mut server = Self { child, port: 0 };
        server.port = line.trim().parse().map_err(|_| format!("{kind} did not start"))?;
        Ok(server)
    }

    pub fn hello(&self) -> Result<Response> {
        client::get(self.port, HELLO)
    }

    /// Where it says hello.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{HELLO}", self.port)
    }

    /// Its CPU time since it began, user and system: µs.
    pub fn cpu_micros(&self) -> Result<u64> {
        let answer = client::get(self.port, USAGE)?.body;
        answer.parse().map_err(|_| format!("the server says it has used {answer:?} µs").into())
    }
}

impl Drop for Server {
    /// A server ends when its input does, also if nobody comes to this.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
