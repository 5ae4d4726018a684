//! The program as a proxy, which a test has started.

use std::net::SocketAddr;

use crate::common::server::{Home, Server, spillgate};
use crate::proxy::message::Message;
use crate::proxy::upstream::Upstream;
use crate::proxy::wire::Wire;

/// No limit that a test meets by accident.
pub(crate) const OPEN: &str = "[[limit]]\nname = 'all'\nquota = '1000000/s'\n";

/// Ends with the test.
pub(crate) struct Proxy {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) home: Home,
}

/// What is to be in the file.
pub(crate) struct Setup {
    top: String,
    to: Vec<String>,
    server: String,
    proxy: String,
    policy: String,
}

impl Setup {
    pub(crate) fn to(urls: &[String]) -> Self {
        let [top, server, proxy] = [(); 3].map(|()| String::new());
        Self { top, to: urls.to_vec(), server, proxy, policy: OPEN.to_owned() }
    }

    /// More lines before the first section.
    pub(crate) fn top(mut self, lines: &str) -> Self {
        self.top.push_str(lines);
        self
    }

    /// More lines of `[server]`.
    pub(crate) fn server(mut self, lines: &str) -> Self {
        self.server.push_str(lines);
        self
    }

    /// More lines of `[proxy]`.
    pub(crate) fn proxy(mut self, lines: &str) -> Self {
        self.proxy.push_str(lines);
        self
    }

    /// Another policy.
    pub(crate) fn policy(mut self, policy: &str) -> Self {
        self.policy = policy.to_owned();
        self
    }

    pub(crate) fn file(&self) -> String {
        let Self { top, to, server, proxy, policy } = self;
        format!(
            "{top}\n[server]\nhttp = '127.0.0.1:0'\n{server}\n[proxy]\nlisten = '127.0.0.1:0'\nto = {to:?}\n\
             {proxy}\n{policy}"
        )
    }

    pub(crate) fn start(&self) -> Proxy {
        self.start_in(Home::new(&self.file()))
    }

    /// Starts with files that are already there.
    pub(crate) fn start_in(&self, home: Home) -> Proxy {
        let mut command = spillgate();
        command.arg("proxy").arg("--config").arg(home.path("spillgate.toml"));
        let server = Server::start(command);
        let address = listener(&server);
        Proxy { server, address, home }
    }
}

/// Where a server takes requests that it forwards.
pub(crate) fn listener(server: &Server) -> SocketAddr {
    let line = server.banner.lines().find(|line| line.trim_start().starts_with("proxy "));
    let url = line.and_then(|line| line.split("://").nth(1));
    let address = url.and_then(|url| url.split_whitespace().next());
    address.unwrap_or_else(|| panic!("no proxy: {}", server.banner)).parse().unwrap()
}

/// How many threads clients are served on, which they come to in turn.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

impl Proxy {
    /// A proxy in front of one service, without limits to speak of.
    pub(crate) fn to(upstream: &Upstream) -> Self {
        Setup::to(&[upstream.url()]).start()
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// Asks on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Message {
        self.connect().get(path, "")
    }

    /// Asks from each thread, so that one has what the last client has left behind. Tells what was
    /// answered first that is not the path.
    pub(crate) fn echo(&self, path: &str) -> Result<(), Message> {
        let answers = (0..threads()).map(|_| self.get(path));
        answers.filter(|answer| answer.text() != path).map(Err).next().unwrap_or(Ok(()))
    }

    /// A number among the metrics.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.server.get("/metrics");
        let lines = metrics.lines().filter_map(|line| line.rsplit_once(' '));
        lines.filter(|(given, _)| *given == name).find_map(|(_, value)| value.parse().ok())
    }
}
