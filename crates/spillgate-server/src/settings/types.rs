//! Types of settings.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use http::uri::PathAndQuery;
use ipnet::IpNet;
use spillgate::{AlgorithmKind, Quota, WhenFull};
use spillgate_policy::parse_duration;
use spillgate_proxy::{HostHeader, UpstreamUrl};
use tracing::level_filters::LevelFilter;

use super::value::{Value, hidden, words};
use crate::Secret;

/// The address of a listener, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    At(SocketAddr),
}

impl Listen {
    /// A port on loopback.
    pub(super) const fn loopback(port: u16) -> Self {
        Self::At(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }

    /// True if other machines can reach it.
    pub(crate) fn is_public(self) -> bool {
        self.address().is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }
}

impl Value for Listen {
    type Bound = ();
    const PLACEHOLDER: &'static str = "ADDRESS";
    const EXAMPLE: &'static str = "127.0.0.1:8390";

    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}")) {
            _ if text == "off" => Ok(Self::Off),
            Some(text) => text.parse().map(Self::At),
            None => text.parse().map(Self::At),
        }
        .map_err(|_| {
            "write an address and a port, such as \"127.0.0.1:8390\", or \"off\"".to_owned()
        })
    }

    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn off() -> Option<Self> {
        Some(Self::Off)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// The quota of `--limit`, in place of a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitQuota(String);

impl LimitQuota {
    /// A policy with that limit only.
    pub(super) fn policy(&self) -> String {
        format!("[[limit]]\nname = \"limit\"\nquota = {:?}\n", self.0)
    }
}

impl FromStr for LimitQuota {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let quota = text.parse::<Quota>();
        quota.map(|_| Self(text.to_owned())).map_err(|error| error.to_string())
    }
}

/// The bearer token of admin routes, and of all routes that other machines can reach.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    const SHORTEST: usize = 16;

    /// A random token of 256 bits.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let mut bits = [0_u8; 32];
        getrandom::fill(&mut bits)?;
        Ok(Self(bits.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(crate) fn secret(&self) -> Option<Secret> {
        Secret::new(&self.0)
    }

    /// The token itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl Value for Token {
    type Bound = ();
    const PLACEHOLDER: &'static str = "TOKEN";
    const EXAMPLE: &'static str = "the output of openssl rand -hex 32";
    const IS_SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("use letters, digits and punctuation only, as a header can hold".to_owned());
        }
        if text.len() < Self::SHORTEST {
            let (length, shortest) = (text.len(), Self::SHORTEST);
            return Err(format!(
                "it has {length} characters; use at least {shortest}, such as those of \
                 `openssl rand -hex 32`"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A password. No message shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(String);

impl Password {
    /// The password itself.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl Value for Password {
    type Bound = ();
    const PLACEHOLDER: &'static str = "PASSWORD";
    const EXAMPLE: &'static str = "…";
    const IS_SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
}

hidden!(Token, Password);

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

words!(LogFormat, ["text" => LogFormat::Text, "json" => LogFormat::Json]);

/// In the units of quotas: `30s`, `500 ms`, `1h`.
impl Value for Duration {
    type Bound = Self;
    const PLACEHOLDER: &'static str = "DURATION";
    const EXAMPLE: &'static str = "30s";

    fn parse(text: &str) -> Result<Self, String> {
        parse_duration(text)
    }

    fn shown(&self) -> Option<String> {
        let nanos = self.as_nanos();
        let units = [
            ("day", 86_400_000_000_000),
            ("h", 3_600_000_000_000),
            ("min", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ];
        let unit = units.into_iter().find(|(_, unit)| nanos > 0 && nanos.is_multiple_of(*unit));
        let (name, unit) = unit.unwrap_or(("ns", 1));
        Some(format!("{}{name}", nanos / unit))
    }

    fn out_of_range(&self, range: &RangeInclusive<Self>) -> Option<String> {
        let show = |bound: &Self| bound.shown().unwrap_or_default();
        match self {
            own if own < range.start() => Some(format!("write at least {}", show(range.start()))),
            own if own > range.end() => Some(format!("write at most {}", show(range.end()))),
            _ => None,
        }
    }

    fn range_text(range: &RangeInclusive<Self>) -> String {
        let show = |bound: &Self| bound.shown().unwrap_or_default();
        match *range.end() {
            Self::MAX => format!("at least {}", show(range.start())),
            ref end => format!("{} to {}", show(range.start()), show(end)),
        }
    }
}

/// A range of addresses, or one alone.
impl Value for IpNet {
    type Bound = ();
    const PLACEHOLDER: &'static str = "CIDR";
    const EXAMPLE: &'static str = "10.0.0.0/8";

    fn parse(text: &str) -> Result<Self, String> {
        let alone = |_| text.parse::<IpAddr>().map(Self::from);
        let range = text.parse().or_else(alone);
        range.map_err(|_| "write an address, or a range such as \"10.0.0.0/8\"".to_owned())
    }

    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for UpstreamUrl {
    type Bound = ();
    const PLACEHOLDER: &'static str = "URL";
    const EXAMPLE: &'static str = "http://127.0.0.1:3000";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(str::to_owned)
    }

    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for PathAndQuery {
    type Bound = ();
    const PLACEHOLDER: &'static str = "PATH";
    const EXAMPLE: &'static str = "/healthz";

    fn parse(text: &str) -> Result<Self, String> {
        let path = text.parse().ok().filter(|_| text.starts_with('/'));
        path.ok_or_else(|| "write a path, such as \"/healthz\"".to_owned())
    }

    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

words!(LevelFilter, [
    "error" => LevelFilter::ERROR,
    "warn" => LevelFilter::WARN,
    "info" => LevelFilter::INFO,
    "debug" => LevelFilter::DEBUG,
    "trace" => LevelFilter::TRACE,
    "off" => LevelFilter::OFF,
]);
words!(WhenFull, [
    "evict" => WhenFull::Evict,
    "protect" => WhenFull::Protect,
    "deny" => WhenFull::Deny,
]);
// Of envoyproxy/ratelimit files: its own algorithm, or a burst of the whole quota that refills
// continuously.
words!(AlgorithmKind, [
    "fixed-window" => AlgorithmKind::FixedWindow,
    "token-bucket" => AlgorithmKind::TokenBucket,
]);
words!(HostHeader, ["keep" => HostHeader::Keep, "upstream" => HostHeader::Upstream]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_public_unless_it_is_loopback() {
        for (text, is_public) in [
            ("127.0.0.1:1", false),
            ("127.9.9.9:1", false),
            ("localhost:1", false),
            ("[::1]:1", false),
            ("[::ffff:127.0.0.1]:1", false),
            ("off", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("10.0.0.1:1", true),
        ] {
            assert_eq!(Listen::parse(text).unwrap().is_public(), is_public, "{text}");
        }
        for wrong in ["", "8390", ":8390", "127.0.0.1", "example.com:1", "127.0.0.1:99999", "OFF"] {
            assert!(Listen::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_long_fits_a_header_and_is_not_shown() {
        for wrong in ["", "0123456789abcde", "0123456789abcde\n", "0123456789 abcdef", "ééééééééé"]
        {
            assert!(Token::parse(wrong).is_err(), "{wrong:?}");
        }
        let token = Token::parse("0123456789abcdef").unwrap();
        assert!(!format!("{token:?}").contains('0'));
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(Token::parse(one.reveal()), Ok(one.clone()));
    }

    #[test]
    fn durations_are_written_like_periods() {
        for (text, time) in [
            ("30s", Some(Duration::from_secs(30))),
            ("500 ms", Some(Duration::from_millis(500))),
            ("1h", Some(Duration::from_secs(3600))),
            ("0s", None),
            ("", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1s burst 1", None),
            ("1s burst 5", None),
        ] {
            assert_eq!(Duration::parse(text).ok(), time, "{text:?}");
        }
        for text in ["90s", "1h", "250ms", "5us", "1ns", "2day", "10min"] {
            assert_eq!(Duration::parse(text).unwrap().shown().unwrap(), text);
        }
    }
}
