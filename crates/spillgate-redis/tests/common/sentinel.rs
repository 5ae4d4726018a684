use std::process::{Child, Stdio};

use spillgate_testing::{Port, program};
use tempfile::TempDir;

use super::cluster::eventually;
use super::server::redis_server;
use super::{Certificates, Server};

/// A master with a replica, and three Sentinels that watch them.
pub(crate) struct Sentinels {
    pub(crate) master: Server,
    pub(crate) replica: Server,
    ports: Vec<Port>,
    children: Vec<Child>,
    _folder: TempDir,
}

impl Sentinels {
    /// Starts them, and waits until a failover is possible.
    pub(crate) fn start() -> Self {
        let master = Server::redis_with(&["--repl-diskless-sync-delay", "0"]);
        let of = master.port.to_string();
        let replica = Server::redis_with(&["--replicaof", "127.0.0.1", &of]);
        let folder = tempfile::tempdir().unwrap();
        let ports: Vec<_> = (0..3).map(|_| Port::reserve()).collect();
        let children = ports.iter().map(|port| sentinel(&folder, port, master.port)).collect();
        let sentinels = Self { master, replica, ports, children, _folder: folder };
        eventually("the Sentinels find each other and the replica", || {
            sentinels.ports.iter().all(knows_all)
        });
        let is_linked =
            || sentinels.replica.command("INFO replication").contains("master_link_status:up");
        eventually("the replica follows", is_linked);
        sentinels
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.ports.iter().map(ToString::to_string).collect();
        format!("redis+sentinel://{}/main", hosts.join(","))
    }

    /// The port of the master, as the first Sentinel has it.
    pub(crate) fn named_master(&self) -> Option<u16> {
        let client = redis::Client::open(format!("redis://{}", self.ports[0])).unwrap();
        let asked = ["GET-MASTER-ADDR-BY-NAME", "main"];
        let answer =
            redis::cmd("SENTINEL").arg(&asked).query(&mut client.get_connection().unwrap());
        let (_, port): (String, u16) = answer.ok()?;
        Some(port)
    }

    /// Ends a Sentinel.
    pub(crate) fn kill(&mut self, place: usize) {
        self.children[place].kill().unwrap();
        self.children[place].wait().unwrap();
    }

    /// Has them make the replica the master.
    pub(crate) fn exchange_master(&self) {
        redis::cmd("SENTINEL").arg("FAILOVER").arg("main").exec(&mut self.admin(0)).unwrap();
    }

    /// A connection to one of them.
    pub(crate) fn admin(&self, place: usize) -> redis::Connection {
        let url = format!("redis://{}", self.ports[place]);
        redis::Client::open(url).unwrap().get_connection().unwrap()
    }

    /// How many clients are subscribed at one of them to what it tells of failovers.
    pub(crate) fn subscribers(&self, place: usize) -> usize {
        let listed = redis::cmd("CLIENT").arg("LIST").query::<String>(&mut self.admin(place));
        listed.unwrap().lines().filter(|client| client.contains(" sub=3 ")).count()
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A Sentinel that speaks TLS, and asks its clients for certificates.
pub(crate) struct TlsSentinel {
    pub(crate) port: u16,
    child: Child,
    _ports: [Port; 2],
    _folder: TempDir,
}

impl TlsSentinel {
    /// Starts one that watches the master on this port, which speaks TLS too.
    pub(crate) fn start(certificates: &Certificates, master: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = [Port::reserve(), Port::reserve()];
        let [port, plain] = ports.each_ref().map(Port::number);
        let file = |name| certificates.file(name).display().to_string();
        let settings = format!(
            "port {plain}\ntls-port {port}\nbind 127.0.0.1\ntls-replication yes\n\
             tls-ca-cert-file {}\ntls-cert-file {}\ntls-key-file {}\ntls-auth-clients yes\n\
             sentinel monitor main 127.0.0.1 {master} 1\n",
            file("ca.pem"),
            file("server.pem"),
            file("server.key"),
        );
        let config = folder.path().join("sentinel.conf");
        std::fs::write(&config, settings).unwrap();
        let mut command = program(&redis_server());
        let child = command.arg(config).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
        let sentinel = Self { port, child, _ports: ports, _folder: folder };
        let client = redis::Client::open(format!("redis://127.0.0.1:{plain}")).unwrap();
        let answers = || client.get_connection().is_ok();
        eventually("the Sentinel answers", answers);
        sentinel
    }
}

impl Drop for TlsSentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sentinel(folder: &TempDir, port: &Port, master: u16) -> Child {
    let port = port.number();
    let file = folder.path().join(format!("{port}.conf"));
    let settings = format!(
        "port {port}\nbind 127.0.0.1\n\
         sentinel monitor main 127.0.0.1 {master} 2\n\
         sentinel down-after-milliseconds main 500\n\
         sentinel failover-timeout main 2000\n"
    );
    std::fs::write(&file, settings).unwrap();
    program(&redis_server()).arg(file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap()
}

fn knows_all(port: &Port) -> bool {
    let ask = || {
        let client = redis::Client::open(format!("redis://{port}"))?;
        let mut connection = client.get_connection()?;
        redis::cmd("INFO").arg("sentinel").query::<String>(&mut connection)
    };
    ask().is_ok_and(|info| info.contains("status=ok") && info.contains("slaves=1,sentinels=3"))
}
