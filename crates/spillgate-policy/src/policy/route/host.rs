//! The host of a request, and patterns of hosts: `api.example.com`, `*.example.com`.

use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The most bytes of a host that the domain name system can hold.
const MOST_BYTES: usize = 253;

/// The host in lower case, without its port and a dot at the end; `None` if it is no
/// host.
///
/// Borrowed if it is a part of what was given.
pub(crate) fn canonical_host(host: &str) -> Option<Cow<'_, str>> {
    let (name, port) = split_port(host)?;
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if name.starts_with('[') {
        return canonical_ipv6(name);
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > MOST_BYTES || !is_name(name.as_bytes()) {
        return None;
    }
    let lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    Some(if lower { Cow::Borrowed(name) } else { Cow::Owned(name.to_ascii_lowercase()) })
}

/// The host and the port, which may be empty.
fn split_port(host: &str) -> Option<(&str, &str)> {
    let end = if host.starts_with('[') {
        host.find(']')? + 1
    } else {
        host.find(':').unwrap_or(host.len())
    };
    let (name, port) = host.split_at(end);
    Some((name, if port.is_empty() { "" } else { port.strip_prefix(':')? }))
}

fn canonical_ipv6(name: &str) -> Option<Cow<'_, str>> {
    let address: Ipv6Addr = name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
    let canonical = format!("[{address}]");
    Some(if canonical == name { Cow::Borrowed(name) } else { Cow::Owned(canonical) })
}

/// Labels with dots between, none of them empty.
fn is_name(name: &[u8]) -> bool {
    let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.split(|byte| *byte == b'.').all(|label| !label.is_empty() && label.iter().all(belongs))
}

/// Which hosts a limit is for: one, or all below a domain, but not the domain itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPattern {
    /// Canonical, and without the `*.` of a wildcard.
    pub(super) name: Box<str>,
    pub(super) wildcard: bool,
}

impl HostPattern {
    /// The error says what is wrong, and what would be right.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let domain = text.strip_prefix("*.");
        let wildcard = domain.is_some();
        let host = domain.unwrap_or(text);
        match canonical_host(host) {
            Some(name) if wildcard && is_address(&name) => Err(fault(text, host)),
            Some(name) if !has_port(host) => Ok(Self { name: name.into(), wildcard }),
            _ => Err(fault(text, host)),
        }
    }

    /// True if the canonical host is one of the pattern.
    pub(crate) fn matches(&self, host: &str) -> bool {
        match host.strip_suffix(&*self.name) {
            Some(labels) if self.wildcard => labels.ends_with('.'),
            Some(labels) => labels.is_empty(),
            None => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wildcard = if self.wildcard { "*." } else { "" };
        write!(f, "{wildcard}{}", self.name)
    }
}

fn has_port(host: &str) -> bool {
    split_port(host).is_some_and(|(name, _)| name != host)
}

fn is_address(name: &str) -> bool {
    name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok()
}

/// Why a text is no pattern. The host is the text without a leading `*.`.
fn fault(text: &str, host: &str) -> String {
    let fault = match text {
        "" => "is empty; leave the condition out to match every host",
        "*" => "is every host; leave the condition out",
        _ if host.parse::<Ipv6Addr>().is_ok() => "lacks brackets; write it like \"[2001:db8::1]\"",
        _ if text.contains("://") => "has a scheme; write the host alone",
        _ if text.contains('/') => {
            "has a slash; write the host alone, and the path as a condition of its own"
        }
        _ if host.contains('*') => {
            "has a '*' elsewhere than before a domain; write it like \"*.example.com\""
        }
        _ if has_port(host) => "has a port; leave it out, for hosts are matched without",
        _ if !text.is_ascii() => {
            "is not ASCII; write it as it is sent, like \"xn--bcher-kva.example\""
        }
        _ => {
            "is none; write it like \"api.example.com\", \"*.example.com\", \"192.0.2.7\" or \
             \"[2001:db8::1]\""
        }
    };
    format!("the host {text:?} {fault}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hosts that are the same, the canonical one first.
    const SAME: &[&[&str]] = &[
        &[
            "api.example.com",
            "API.Example.COM",
            "api.example.com.",
            "api.example.com:",
            "api.example.com.:80",
        ],
        &["localhost", "LOCALHOST:8080"],
        &["a_b.xn--bcher-kva.example"],
        &["192.0.2.7", "192.0.2.7:443"],
        &["[::1]", "[::1]:80", "[0:0::1]", "[0000::0001]:443"],
        &["[2001:db8::a]", "[2001:DB8::A]"],
    ];

    #[test]
    fn every_spelling_of_a_host_is_the_same() {
        for spellings in SAME {
            for spelling in *spellings {
                assert_eq!(canonical_host(spelling).as_deref(), Some(spellings[0]), "{spelling:?}");
            }
            assert!(matches!(canonical_host(spellings[0]), Some(Cow::Borrowed(_))));
        }
    }

    #[test]
    fn what_is_no_host_is_not_understood() {
        let bad = [
            "",
            ".",
            "..",
            ":80",
            "a..b",
            ".a",
            "a..",
            "a b",
            "a/b",
            "a@b",
            "a:b",
            "a:80:80",
            "::1",
            "[::1",
            "[::1]80",
            "[::1]:x",
            "[]",
            "[a]",
            "[::1].",
            "*.a.com",
            "bücher.de",
            "a%2eb",
        ];
        for host in bad {
            assert_eq!(canonical_host(host), None, "{host:?}");
        }
        assert!(canonical_host(&"a".repeat(253)).is_some());
        assert!(canonical_host(&"a".repeat(254)).is_none());
    }

    /// Patterns, canonical hosts that are theirs, and hosts that are not.
    const MATCHES: &[(&str, &[&str], &[&str])] = &[
        (
            "API.example.com.",
            &["api.example.com"],
            &["example.com", "v1.api.example.com", "xapi.example.com"],
        ),
        (
            "*.Example.com",
            &["api.example.com", "a.b.example.com"],
            &["example.com", "anexample.com", "com"],
        ),
        ("192.0.2.7", &["192.0.2.7"], &["192.0.2.8"]),
        ("[0:0::1]", &["[::1]"], &["[::2]"]),
    ];

    #[test]
    fn a_pattern_matches_its_hosts_and_no_others() {
        for (text, theirs, others) in MATCHES {
            let pattern = HostPattern::parse(text).unwrap();
            assert!(theirs.iter().all(|host| pattern.matches(host)), "{text:?}");
            assert!(!others.iter().any(|host| pattern.matches(host)), "{text:?}");
        }
    }

    /// Texts that are no patterns, and what the message must say.
    const BAD: &[(&str, &[&str])] = &[
        ("", &["\"\"", "is empty", "leave the condition out"]),
        ("*", &["\"*\"", "leave the condition out"]),
        ("example.com:80", &["\"example.com:80\"", "port"]),
        ("*.example.com:80", &["port"]),
        ("example.com:", &["port"]),
        ("[::1]:80", &["port"]),
        ("::1", &["brackets"]),
        ("https://example.com", &["scheme", "host alone"]),
        ("example.com/a", &["slash", "path"]),
        ("a.*.com", &["'*'", "\"*.example.com\""]),
        ("*.*.com", &["'*'"]),
        ("*example.com", &["'*'"]),
        ("bücher.example", &["ASCII", "xn--"]),
        ("*.", &["\"*.\"", "\"*.example.com\""]),
        ("*.192.0.2.7", &["\"192.0.2.7\""]),
        ("*.[::1]", &["\"[2001:db8::1]\""]),
        ("a b", &["\"a b\"", "\"api.example.com\""]),
        ("a..b", &["\"a..b\""]),
    ];

    #[test]
    fn a_bad_pattern_is_refused_with_a_reason() {
        for (text, reasons) in BAD {
            let message = HostPattern::parse(text).unwrap_err();
            for reason in *reasons {
                assert!(message.contains(reason), "{text:?}: {message:?} lacks {reason:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_asked_for_its_host(
            text in any::<String>(),
            likely in "[aA*.:0-9/\\[\\]]{0,12}",
        ) {
            for text in [text, likely] {
                let _ = HostPattern::parse(&text);
                if let Some(host) = canonical_host(&text) {
                    prop_assert_eq!(canonical_host(&host), Some(Cow::Borrowed(&*host)));
                }
            }
        }
    }
}
