//! Values that are written the same way as a flag, in the environment and in the file. An
//! error says what to write.

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use spillgate::Quota;
use tracing::level_filters::LevelFilter;

use crate::Secret;

/// Where to listen, or that nobody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    At(SocketAddr),
}

impl Listen {
    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }

    /// True if others than this machine's programs can reach it.
    pub(crate) fn is_public(self) -> bool {
        self.address().is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}")) {
            _ if text == "off" => Ok(Self::Off),
            Some(text) => text.parse().map(Self::At),
            None => text.parse().map(Self::At),
        }
        .map_err(|_| "write an address and a port, such as \"127.0.0.1:8390\", or \"off\"")
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

/// A time, in the units of quotas: `30s`, `500 ms`, `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RIGHT: &str = "write a time, such as \"30s\", \"500ms\" or \"1h\"";
        // The part of a quota's text that tells the period, and nothing after it.
        let is_period = text.starts_with(|first: char| first.is_ascii_digit());
        let quota = format!("1/{text} burst 1").parse::<Quota>().ok().filter(|_| is_period);
        let period = quota.and_then(|quota| quota.period());
        period.map(Self).ok_or(RIGHT)
    }
}

/// The quota of the only limit of a server, as a text that is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitQuota(String);

impl LimitQuota {
    /// A policy with that limit alone.
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

/// A range of addresses, or one alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range(pub(crate) IpNet);

impl FromStr for Range {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let alone = |_| text.parse::<IpAddr>().map(IpNet::from);
        let range = text.parse().or_else(alone);
        range.map(Self).map_err(|_| "write an address, or a range such as \"10.0.0.0/8\"")
    }
}

/// What admin routes, and everyone who is not on this machine, must know.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    const SHORTEST: usize = 16;

    /// 256 bits that nobody can guess.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let mut bits = [0_u8; 32];
        getrandom::fill(&mut bits)?;
        Ok(Self(bits.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(crate) fn secret(&self) -> Option<Secret> {
        Secret::new(&self.0)
    }

    /// The token itself, for the one who started the server.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("use letters, digits and signs only, as a header can hold".to_owned());
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

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// A text that may be a secret. It is judged later than other flags, whose errors show what
/// was given.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden(String);

impl Hidden {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for whoever has to know it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Hidden {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::new(text))
    }
}

impl From<Token> for Hidden {
    fn from(token: Token) -> Self {
        Self(token.0)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("write \"text\" or \"json\""),
        }
    }
}

/// What is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLevel(pub(crate) LevelFilter);

impl FromStr for LogLevel {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = ["off", "error", "warn", "info", "debug", "trace"];
        let level = known.contains(&text).then(|| text.parse().ok()).flatten();
        level
            .map(Self)
            .ok_or("write \"error\", \"warn\", \"info\", \"debug\", \"trace\" or \"off\"")
    }
}

impl Default for LogLevel {
    fn default() -> Self {
        Self(LevelFilter::INFO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_like_periods() {
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
            assert_eq!(text.parse::<Span>().ok(), time.map(Span), "{text:?}");
        }
    }

    #[test]
    fn addresses_are_told_apart_by_who_can_reach_them() {
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
            assert_eq!(text.parse::<Listen>().unwrap().is_public(), is_public, "{text}");
        }
        for wrong in ["", "8390", ":8390", "127.0.0.1", "example.com:1", "127.0.0.1:99999", "OFF"] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_long_fits_a_header_and_is_not_shown() {
        for wrong in ["", "0123456789abcde", "0123456789abcde\n", "0123456789 abcdef", "ééééééééé"]
        {
            assert!(wrong.parse::<Token>().is_err(), "{wrong:?}");
        }
        let token: Token = "0123456789abcdef".parse().unwrap();
        assert!(!format!("{token:?}").contains('0'));
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.reveal().parse(), Ok(one.clone()));
    }
}
