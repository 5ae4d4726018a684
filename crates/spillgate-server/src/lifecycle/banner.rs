use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use spillgate_policy::Policy;

use super::server::Bound;
use crate::settings::{Config, Source, Token};

/// What is printed at the start: listeners, policy, and commands to try.
#[derive(Debug)]
pub(super) struct Banner {
    protocols: Vec<(&'static str, String)>,
    /// Where to try HTTP, the Redis protocol and the proxy.
    http: Option<SocketAddr>,
    resp: Option<SocketAddr>,
    proxy: Option<SocketAddr>,
    /// The certificate that clients trust, with TLS.
    certificate: Option<PathBuf>,
    http_is_public: bool,
    resp_is_public: bool,
    policy: String,
    state: String,
    /// A limit to try, and whether it has a key.
    limit: Option<(String, bool)>,
    token: Option<Token>,
}

/// How many limits a policy has, and one to try: its name, and whether it has a key.
#[derive(Debug)]
pub(super) struct SimpleLimit {
    limits: usize,
    first: Option<(String, bool)>,
}

impl Banner {
    /// What the banner shows of a policy.
    pub(super) fn simple_limit(policy: &Policy) -> SimpleLimit {
        let simple =
            policy.configured_limits().find(|limit| policy.parts(limit).is_some_and(|n| n < 2));
        let first = simple.map(|limit| (limit.to_owned(), policy.parts(limit) == Some(1)));
        SimpleLimit { limits: policy.configured_limits().count(), first }
    }

    pub(super) fn new(
        source: &Source,
        config: &Config,
        limit: SimpleLimit,
        bound: &[Bound],
        token: Option<&Token>,
    ) -> io::Result<Self> {
        let address = |wanted| {
            let found = bound.iter().find(|bound| bound.protocol.name() == wanted);
            found.map(|bound| bound.socket.local_addr()).transpose()
        };
        let (settings, SimpleLimit { limits, first }) = (&config.settings, limit);
        let protocols = bound.iter().map(|Bound { protocol, socket }| {
            let url = protocol.url(socket.local_addr()?, settings.tls_cert.is_some());
            Ok((protocol.name(), url))
        });
        let plural = if limits == 1 { "" } else { "s" };
        let file = source.path.as_ref().map(|path| path.display().to_string());
        let file = file.or(source.limit.as_ref().map(|_| "--limit".to_owned()));
        let file = file.unwrap_or_else(|| "an example".to_owned());
        let folder =
            settings.envoy_config.as_ref().map(|folder| format!(" and {}", folder.display()));
        let folder = folder.unwrap_or_default();
        Ok(Self {
            protocols: protocols.collect::<io::Result<_>>()?,
            http: address("http")?.or(address("admin")?),
            resp: address("resp")?,
            proxy: address("proxy")?,
            certificate: settings.tls_cert.clone(),
            http_is_public: settings.http_is_public(),
            resp_is_public: settings.resp.is_public(),
            policy: format!("{file}{folder}, {limits} limit{plural}"),
            state: match (&settings.store, &settings.snapshot) {
                (Some(store), _) => format!("shared, in {}", store.place()),
                (None, None) => "in memory; lost at exit".to_owned(),
                (None, Some(path)) => format!("in memory, snapshots in {}", path.display()),
            },
            limit: first,
            token: token.cloned(),
        })
    }

    /// Prints it to standard output: it may hold a secret, which the log must not.
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
        writeln!(out, "{bold}spillgate{plain} {}", env!("CARGO_PKG_VERSION"))?;
        for (name, url) in &self.protocols {
            writeln!(out, "  {name:<7} {url}")?;
        }
        writeln!(out, "  policy  {}", self.policy)?;
        writeln!(out, "  state   {}", self.state)?;
        if let Some(token) = &self.token {
            writeln!(out, "  token   {}", token.reveal())?;
            writeln!(
                out,
                "          {dim}generated for this run; set your own with SPILLGATE_TOKEN{plain}"
            )?;
        }
        writeln!(out, "\n{bold}Try{plain}")?;
        self.tries().into_iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        writeln!(out)
    }

    fn tries(&self) -> Vec<String> {
        let check = self.limit.as_ref().map(|(limit, has_key)| {
            let key = if *has_key { ",\"key\":\"203.0.113.7\"" } else { "" };
            format!("--json '{{\"limit\":\"{limit}\"{key}}}' ")
        });
        let check = check.and_then(|check| self.curl(&check, "/v1/check"));
        // The proxy needs no token.
        let proxy = self.proxy.map(|address| {
            format!("curl -i {}{}://{}/", self.trusted(), self.scheme(), reachable(address))
        });
        let all = [proxy, check, self.redis_cli(), self.curl("", "/metrics"), self.page()];
        all.into_iter().flatten().collect()
    }

    /// Where to look.
    fn page(&self) -> Option<String> {
        let address = reachable(self.http?);
        Some(format!("{}://{address}/ in a browser", self.scheme()))
    }

    fn curl(&self, options: &str, path: &str) -> Option<String> {
        let address = reachable(self.http?);
        let bearer = match self.http_is_public {
            true => "-H \"authorization: Bearer $SPILLGATE_TOKEN\" ",
            false => "",
        };
        let (trusted, scheme) = (self.trusted(), self.scheme());
        Some(format!("curl {trusted}{bearer}{options}{scheme}://{address}{path}"))
    }

    fn scheme(&self) -> &'static str {
        if self.certificate.is_some() { "https" } else { "http" }
    }

    fn redis_cli(&self) -> Option<String> {
        let address = reachable(self.resp?);
        // Arguments show up in process lists.
        let password = match self.resp_is_public {
            true => "REDISCLI_AUTH=\"$SPILLGATE_TOKEN\" ",
            false => "",
        };
        let tls = if self.certificate.is_some() { "--tls " } else { "" };
        let (trusted, host, port) = (self.trusted(), address.ip(), address.port());
        // The default of redis-cli.
        let is_default = host == IpAddr::from([127, 0, 0, 1]);
        let host = if is_default { String::new() } else { format!("-h {host} ") };
        Some(format!(
            "{password}redis-cli {tls}{trusted}{host}-p {port} CL.THROTTLE user:42 15 30 60"
        ))
    }

    fn trusted(&self) -> String {
        let certificate = self.certificate.as_ref();
        certificate.map_or_else(String::new, |file| format!("--cacert {} ", file.display()))
    }
}

/// An address to connect to, for one that stands for all.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        true => ([127, 0, 0, 1], address.port()).into(),
        false => address,
    }
}

struct Style {
    bold: &'static str,
    dim: &'static str,
    plain: &'static str,
}

impl Style {
    const PLAIN: Self = Self { bold: "", dim: "", plain: "" };
    const COLOURED: Self = Self { bold: "\x1b[1m", dim: "\x1b[2m", plain: "\x1b[0m" };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banner(http: &str, resp: &str, certificate: Option<&str>, is_public: bool) -> Banner {
        Banner {
            http: http.parse().ok(),
            resp: resp.parse().ok(),
            protocols: Vec::new(),
            proxy: None,
            certificate: certificate.map(PathBuf::from),
            http_is_public: is_public,
            resp_is_public: is_public,
            policy: String::new(),
            state: String::new(),
            limit: Some(("api".to_owned(), false)),
            token: None,
        }
    }

    #[test]
    fn what_to_try_reaches_the_server() {
        for (banner, redis) in [
            (banner("off", "127.0.0.1:1", None, false), "redis-cli -p 1 "),
            (banner("off", "127.0.0.2:1", None, false), "redis-cli -h 127.0.0.2 -p 1 "),
            (banner("off", "[::1]:1", None, false), "redis-cli -h ::1 -p 1 "),
            (
                banner("off", "0.0.0.0:1", None, true),
                "REDISCLI_AUTH=\"$SPILLGATE_TOKEN\" redis-cli -p 1 ",
            ),
            (
                banner("off", "10.0.0.1:1", Some("cert.pem"), true),
                "REDISCLI_AUTH=\"$SPILLGATE_TOKEN\" redis-cli --tls --cacert cert.pem -h 10.0.0.1 -p 1 ",
            ),
        ] {
            let tries = banner.tries();
            assert_eq!(tries, [format!("{redis}CL.THROTTLE user:42 15 30 60")]);
        }
        assert_eq!(
            banner("[::]:2", "off", Some("cert.pem"), true).tries()[1],
            "curl --cacert cert.pem -H \"authorization: Bearer $SPILLGATE_TOKEN\" \
             https://127.0.0.1:2/metrics"
        );
    }
}
