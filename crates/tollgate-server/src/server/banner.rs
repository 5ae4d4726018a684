use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;

use super::conversation::Protocol;
use super::running::Socket;
use crate::config::{Config, Source, Token};

/// What a person sees who starts a server: what listens where, and what to try.
#[derive(Debug)]
pub(super) struct Banner {
    http: Option<SocketAddr>,
    resp: Option<SocketAddr>,
    has_tls: bool,
    needs_token: bool,
    policy: String,
    state: String,
    /// A limit to try, and whether its callers have a key.
    limit: Option<(String, bool)>,
    /// The token, if nobody knows it yet.
    token: Option<Token>,
}

impl Banner {
    pub(super) fn new(
        source: &Source,
        config: &Config,
        sockets: &[Socket],
        token: Option<&Token>,
    ) -> io::Result<Self> {
        let address = |wanted| {
            let socket = sockets.iter().find(|(protocol, _)| *protocol == wanted);
            socket.map(|(_, socket)| socket.local_addr()).transpose()
        };
        let Config { policy, settings, .. } = config;
        let simple = policy.limits().find(|limit| policy.parts(limit).is_some_and(|n| n < 2));
        let limits = policy.limits().count();
        let plural = if limits == 1 { "" } else { "s" };
        let file = source.path.as_ref().map(|path| path.display().to_string());
        let file = file.unwrap_or_else(|| "an example".to_owned());
        Ok(Self {
            http: address(Protocol::Http)?,
            resp: address(Protocol::Resp)?,
            has_tls: settings.tls.is_some(),
            needs_token: settings.http.is_public(),
            policy: format!("{file}, {limits} limit{plural}"),
            state: match &settings.snapshot {
                None => "in memory; gone when the server ends".to_owned(),
                Some(path) => format!("in memory, kept in {}", path.display()),
            },
            limit: simple.map(|limit| (limit.to_owned(), policy.parts(limit) == Some(1))),
            token: token.cloned(),
        })
    }

    /// Shows it on standard output: it may hold a secret, and the log must not.
    pub(super) fn print(&self) {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let style =
            if io::stdout().is_terminal() && !is_plain { Style::COLOURED } else { Style::PLAIN };
        let mut text = String::new();
        // A `String` takes everything; and a server whose output nobody reads still serves.
        let _ = self.write(&mut text, &style);
        let _ = io::Write::write_all(&mut io::stdout(), text.as_bytes());
    }

    fn write(&self, out: &mut String, style: &Style) -> std::fmt::Result {
        let Style { bold, dim, plain } = style;
        let (http, redis) = if self.has_tls { ("https", "rediss") } else { ("http", "redis") };
        writeln!(out, "{bold}tollgate{plain} {}", env!("CARGO_PKG_VERSION"))?;
        if let Some(address) = self.http {
            writeln!(out, "  http    {http}://{address}")?;
        }
        if let Some(address) = self.resp {
            writeln!(out, "  redis   {redis}://{address}")?;
        }
        writeln!(out, "  policy  {}", self.policy)?;
        writeln!(out, "  state   {}", self.state)?;
        if let Some(token) = &self.token {
            writeln!(out, "  token   {}", token.reveal())?;
            writeln!(
                out,
                "          {dim}made for this run; choose one with TOLLGATE_TOKEN{plain}"
            )?;
        }
        writeln!(out, "\n{bold}Try{plain}")?;
        self.tries().into_iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        writeln!(out)
    }

    fn tries(&self) -> Vec<String> {
        let mut tries = Vec::new();
        let insecure = if self.has_tls { "-k " } else { "" };
        let bearer = match self.needs_token {
            true => "-H \"authorization: Bearer $TOLLGATE_TOKEN\" ",
            false => "",
        };
        let scheme = if self.has_tls { "https" } else { "http" };
        if let (Some(address), Some((limit, has_key))) = (self.http, &self.limit) {
            let address = reachable(address);
            let key = if *has_key { ",\"key\":\"203.0.113.7\"" } else { "" };
            tries.push(format!(
                "curl {insecure}{bearer}--json '{{\"limit\":\"{limit}\"{key}}}' {scheme}://{address}/v1/check"
            ));
        }
        if let Some(address) = self.resp.map(reachable) {
            let tls = if self.has_tls { "--tls --insecure " } else { "" };
            let (host, port) = (address.ip(), address.port());
            let host = if host.is_ipv4() { String::new() } else { format!("-h {host} ") };
            tries.push(format!("redis-cli {tls}{host}-p {port} CL.THROTTLE user:42 15 30 60"));
        }
        if let Some(address) = self.http.map(reachable) {
            tries.push(format!("curl {insecure}{bearer}{scheme}://{address}/metrics"));
        }
        tries
    }
}

/// An address under which this machine reaches one that stands for all.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => ([127, 0, 0, 1], v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => ([127, 0, 0, 1], v6.port()).into(),
        address => address,
    }
}

/// What makes words stand out.
struct Style {
    bold: &'static str,
    dim: &'static str,
    plain: &'static str,
}

impl Style {
    const PLAIN: Self = Self { bold: "", dim: "", plain: "" };
    const COLOURED: Self = Self { bold: "\x1b[1m", dim: "\x1b[2m", plain: "\x1b[0m" };
}
