use std::time::Duration;

use super::GivenProxy;
use crate::settings::settings::size;
use crate::settings::value::{Listen, Span};

/// A reverse proxy, once all has been said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxySettings {
    pub(crate) listen: Listen,
    pub(crate) runtime: spillgate_proxy::ProxySettings,
}

const PORT: u16 = 8080;

impl ProxySettings {
    /// Says which upstream is this server itself, at one of the addresses that it listens on.
    pub(in crate::settings) fn loops(&self, listens: &[Listen]) -> Option<String> {
        let addresses = listens.iter().chain([&self.listen]).filter_map(|listen| match listen {
            Listen::At(address) => Some(*address),
            Listen::Off => None,
        });
        let mut loops = addresses
            .flat_map(|address| self.runtime.upstreams.iter().filter(move |to| to.is_at(address)));
        let to = loops.next()?;
        Some(format!("proxy to: {to} is this server itself; write where the service listens"))
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
        let mut runtime = spillgate_proxy::ProxySettings::new(to);
        let set =
            |time: &mut Duration, given: Option<Span>| *time = given.map_or(*time, |span| span.0);
        set(&mut runtime.connect_timeout, given.connect_timeout);
        set(&mut runtime.response_timeout, given.response_timeout);
        set(&mut runtime.idle_timeout, given.idle_timeout);
        set(&mut runtime.upgrade_idle_timeout, given.upgrade_idle);
        set(&mut runtime.health_interval, given.health_every);
        runtime.health_path = given.health_path.clone().map(Into::into);
        runtime.host = given.host.unwrap_or_default();
        runtime.ca = given.ca.clone();
        runtime.via = given.via.unwrap_or(false);
        if let Some(keep) = given.keep {
            runtime.max_idle_per_upstream = size(keep);
        }
        let listen = given.listen.unwrap_or(Listen::At(([127, 0, 0, 1], PORT).into()));
        Some(Self { listen, runtime })
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
