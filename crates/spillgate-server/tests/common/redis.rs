//! A real Redis that a test has started.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::common::server::until;

/// Ends with the test. It keeps nothing over a restart.
pub(crate) struct Redis {
    folder: TempDir,
    port: u16,
    child: Child,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With more arguments.
    pub(crate) fn with(arguments: &[&str]) -> Self {
        // Free until somebody else is given it, which takes a while.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let child = spawn(&folder, port, arguments);
        let redis = Self { folder, port, child };
        redis.wait();
        redis
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, empty, where it was.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.folder, self.port, &[]);
        self.wait();
    }

    /// What it answers to a command about a key, or about keys.
    pub(crate) fn tell(&self, command: &str, key: &str) -> String {
        let port = self.port.to_string();
        let message = Command::new("redis-cli").args(["-p", &port, command, key]).output().unwrap();
        String::from_utf8_lossy(&message.stdout).trim().to_owned()
    }

    /// What it answers to a command of several words.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let port = self.port.to_string();
        let message = Command::new("redis-cli").args(["-p", &port]).args(words).output().unwrap();
        String::from_utf8_lossy(&message.stdout).trim().to_owned()
    }

    /// Runs a script about a key.
    pub(crate) fn script(&self, script: &str, key: &str) -> String {
        self.command(&["EVAL", script, "1", key])
    }

    fn wait(&self) {
        let port = self.port.to_string();
        until("a Redis", || {
            let ping = Command::new("redis-cli").args(["-p", &port, "ping"]).output().unwrap();
            let message = String::from_utf8_lossy(&ping.stdout);
            ["PONG", "NOAUTH"].iter().any(|sign| message.contains(sign))
        });
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &TempDir, port: u16, arguments: &[&str]) -> Child {
    let mut command = Command::new("redis-server");
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
        .arg(folder.path())
        .args(arguments)
        .stdout(Stdio::null());
    command.spawn().unwrap_or_else(|error| {
        panic!("redis-server cannot be run: {error}; scripts/test installs it")
    })
}
