//! A server that a test has started.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use spillgate_testing::certificates::self_signed;
use tempfile::TempDir;

use crate::operate::clients::Http;

/// The program, which knows nothing of the variables of whoever runs the tests. At its end it
/// waits for nobody who might still come.
pub(crate) fn spillgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spillgate"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("SPILLGATE_SHUTDOWN_DELAY", "1ms");
    command
}

/// A folder with a file `spillgate.toml` and whatever a server keeps beside it.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new(config: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.write(config);
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces the configuration, as an editor does: by another file.
    pub(crate) fn write(&self, config: &str) {
        std::fs::write(self.path("new"), config).unwrap();
        std::fs::rename(self.path("new"), self.path("spillgate.toml")).unwrap();
    }

    /// Writes another certificate for this machine, as `cert.pem` and `key.pem`.
    pub(crate) fn certify(&self) {
        let own = self_signed(&["localhost", "127.0.0.1"]);
        std::fs::write(self.path("key.pem"), own.key).unwrap();
        std::fs::write(self.path("cert.pem"), own.pem).unwrap();
    }

    /// Starts a server on free ports.
    pub(crate) fn start(&self, arguments: &[&str]) -> Server {
        let mut command = spillgate();
        command.arg("serve").arg("--config").arg(self.path("spillgate.toml")).args(arguments);
        Server::start(command)
    }
}

/// Where a listener is that is off.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) http: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) banner: String,
    log: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts a server, which has told where it listens once this returns.
    pub(crate) fn start(command: Command) -> Self {
        let mut server = Self::begin(command);
        let mut stdout = BufReader::new(server.child.stdout.take().unwrap());
        let mut banner = String::new();
        // Two paragraphs.
        while !banner.contains("\nTry\n") || !banner.ends_with("\n\n") {
            if stdout.read_line(&mut banner).unwrap() == 0 {
                panic!("no server: {}\n{banner}", server.wait().1);
            }
        }
        // Whatever else it may say must not block it.
        spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let address = |name: &str| {
            let line = banner.lines().find(|line| line.trim_start().starts_with(name));
            let url = line.and_then(|line| line.split("://").nth(1));
            url.map_or(NOWHERE, |address| address.parse().unwrap())
        };
        (server.http, server.resp) = (address("http "), address("resp "));
        server.grpc = address("grpc ");
        server.banner = banner;
        server
    }

    /// Starts a server, which may not listen yet.
    pub(crate) fn begin(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let log = spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let banner = String::new();
        Self { child, http: NOWHERE, resp: NOWHERE, grpc: NOWHERE, banner, log: Some(log) }
    }

    /// The token that it has made.
    pub(crate) fn token(&self) -> &str {
        let line = self.banner.lines().find_map(|line| line.trim().strip_prefix("token"));
        line.unwrap_or_default().trim()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }

    pub(crate) fn get(&self, path: &str) -> String {
        Http::connect(self.http).and_then(|mut client| client.get(path)).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// The memory that it holds: bytes.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// A line about its memory in what the system tells of it: bytes.
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Waits for its end. Tells how it ended, and what it has logged.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        (status, self.log.take().unwrap().join().unwrap())
    }

    /// Ends it in order, and tells what it has logged.
    pub(crate) fn stop(self) -> String {
        self.signal("TERM");
        let (status, log) = self.wait();
        assert!(status.success(), "{status}\n{log}");
        log
    }

    /// Ends it as a crash does, and tells what it has logged.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.wait().1
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program prints that ends well.
pub(crate) fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{stderr}");
    String::from_utf8(stdout).unwrap()
}

/// Waits until something is so: on a busy machine a minute and more.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("in vain waited for: {what}");
}

/// The files of a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
