use std::path::PathBuf;
use std::time::Duration;

use http::uri::PathAndQuery;

use super::GivenProxy;
use super::value::{Host, UpstreamUrl};
use crate::settings::settings::{size, time};
use crate::settings::value::Listen;

/// A reverse proxy, once all has been said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxySettings {
    pub(crate) listen: Listen,
    /// At least one.
    pub(crate) to: Vec<UpstreamUrl>,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) upgrade_idle: Duration,
    pub(crate) health_path: Option<PathAndQuery>,
    pub(crate) health_every: Duration,
    pub(crate) host: Host,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) keep: usize,
    pub(crate) via: bool,
}

const PORT: u16 = 8080;

impl ProxySettings {
    /// Names all upstreams.
    pub(crate) fn upstreams(&self) -> String {
        self.to.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Says which upstream is this server itself, at one of the addresses that it listens on.
    pub(in crate::settings) fn loops(&self, listens: &[Listen]) -> Option<String> {
        let addresses = listens.iter().chain([&self.listen]).filter_map(|listen| match listen {
            Listen::At(address) => Some(*address),
            Listen::Off => None,
        });
        let mut loops =
            addresses.flat_map(|address| self.to.iter().filter(move |to| to.is_at(address)));
        let to = loops.next()?;
        Some(format!("proxy to: {to} is this server itself; write where the service listens"))
    }

    /// True if connections to an upstream would be made and kept in the same way.
    pub(crate) fn connects_like(&self, other: &Self) -> bool {
        let times = |of: &Self| (of.connect_timeout, of.response_timeout, of.idle_timeout);
        times(self) == times(other) && self.keep == other.keep
    }
}

impl ProxySettings {
    /// Fills in defaults, and tells what is missing; `None` if nothing is to be passed on.
    pub(in crate::settings) fn new(given: &GivenProxy, problems: &mut Vec<String>) -> Option<Self> {
        let to = given.to.clone().unwrap_or_default();
        if to.is_empty() {
            if given.is_wanted {
                problems.push(
                    "the proxy has nowhere to pass requests on to; add --to \
                     http://127.0.0.1:3000, or to = \"http://127.0.0.1:3000\" in [proxy]"
                        .to_owned(),
                );
            }
            return None;
        }
        let mut twice = to.iter().enumerate().filter(|(at, one)| to[..*at].contains(one));
        if let Some((_, twice)) = twice.next() {
            problems.push(format!("proxy to: {twice} is there twice; write it once"));
        }
        Some(Self {
            listen: given.listen.unwrap_or(Listen::At(([127, 0, 0, 1], PORT).into())),
            to,
            connect_timeout: time(given.connect_timeout, 5),
            response_timeout: time(given.response_timeout, 30),
            idle_timeout: time(given.idle_timeout, 60),
            upgrade_idle: time(given.upgrade_idle, 3600),
            health_path: given.health_path.clone().map(|path| path.0),
            health_every: time(given.health_every, 5),
            host: given.host.unwrap_or_default(),
            ca: given.ca.clone(),
            keep: given.keep.map_or(64, size),
            via: given.via.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_not_passed_on_to_the_server_itself() {
        for (to, listen, loops) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", true),
            ("http://[::1]:8080", "0.0.0.0:8080", true),
            ("http://127.0.0.1:8390", "127.0.0.1:8080", true),
            ("http://127.0.0.1:8081", "127.0.0.1:8080", false),
            ("http://127.0.0.2:8080", "127.0.0.1:8080", false),
            ("http://app:8080", "0.0.0.0:8080", false),
        ] {
            let mut given = GivenProxy { listen: listen.parse().ok(), ..GivenProxy::default() };
            given.to = Some(vec![to.parse().unwrap()]);
            let settings = ProxySettings::new(&given, &mut Vec::new()).unwrap();
            let http = "127.0.0.1:8390".parse().unwrap();
            assert_eq!(settings.loops(&[http]).is_some(), loops, "{to} {listen}");
        }
    }
}
