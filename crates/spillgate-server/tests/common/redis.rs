//! A real Redis that a test has started.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use spillgate_testing::{Port, program};
use tempfile::TempDir;

use crate::common::server::until;

/// Ends with the test. It keeps nothing over a restart.
pub(crate) struct Redis {
    folder: TempDir,
    port: Port,
    child: Child,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With more arguments.
    pub(crate) fn with(arguments: &[&str]) -> Self {
        let port = Port::reserve();
        let folder = tempfile::tempdir().unwrap();
        let child = spawn(&folder, &port, arguments);
        let mut redis = Self { folder, port, child };
        redis.wait();
        redis
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, empty, where it was.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.folder, &self.port, &[]);
        self.wait();
    }

    /// What it answers to a command about a key, or about keys.
    pub(crate) fn tell(&self, command: &str, key: &str) -> String {
        let port = self.port().to_string();
        let message = program("redis-cli").args(["-p", &port, command, key]).output().unwrap();
        String::from_utf8_lossy(&message.stdout).trim().to_owned()
    }

    /// What it answers to a command of several words.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let port = self.port().to_string();
        let message = program("redis-cli").args(["-p", &port]).args(words).output().unwrap();
        String::from_utf8_lossy(&message.stdout).trim().to_owned()
    }

    /// Runs a script about a key.
    pub(crate) fn script(&self, script: &str, key: &str) -> String {
        self.command(&["EVAL", script, "1", key])
    }

    fn wait(&mut self) {
        let address = self.port.address();
        until("a Redis", || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "Redis has ended: {ended:?}");
            is_ready(address)
        });
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a Redis answers, be it that it wants a password.
fn is_ready(address: SocketAddr) -> bool {
    let ping = || {
        let mut socket = TcpStream::connect(address)?;
        socket.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        socket.read_exact(&mut answer)?;
        Ok::<_, std::io::Error>([b"+PONG", b"-NOAU"].contains(&&answer))
    };
    ping().unwrap_or(false)
}

fn spawn(folder: &TempDir, port: &Port, arguments: &[&str]) -> Child {
    let mut command = program("redis-server");
    command
        .args(["--port", &port.number().to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
        .arg(folder.path())
        .args(arguments)
        .stdout(Stdio::null());
    command.spawn().unwrap()
}
