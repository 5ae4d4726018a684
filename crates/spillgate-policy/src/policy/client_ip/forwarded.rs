//! The header `Forwarded` of RFC 7239.
//!
//! A line is read from its end, since only what trusted proxies appended is to be
//! believed. Whatever a client wrote before that, an open quote included, is not
//! even looked at. That is sound because an element can be told from its end: a
//! quoted string opens at the first quote, going left, that no backslash escapes.

use crate::policy::address::Address;
use std::borrow::Cow;

use super::node;

/// The clients that a line names, the last first. `None` where an element is
/// malformed, or names nobody, or no address.
pub(super) fn clients(line: &[u8]) -> impl Iterator<Item = Option<Address>> {
    rsplit(line, b',').map(client)
}

/// What an element such as `for="[2001:db8::7]:80";proto=https` names.
fn client(element: &[u8]) -> Option<Address> {
    let mut client = None;
    for pair in rsplit(element, b';').map(<[u8]>::trim_ascii) {
        if pair.is_empty() {
            continue;
        }
        let (name, value) = parameter(pair)?;
        if name.eq_ignore_ascii_case(b"for") && client.replace(value).is_some() {
            return None;
        }
    }
    node::parse(&client?)
}

/// Reads `name=value` or `name="value"`.
fn parameter(pair: &[u8]) -> Option<(&[u8], Cow<'_, [u8]>)> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&pair[..equals], &pair[equals + 1..]);
    let value = match value {
        [b'"', quoted @ .., b'"'] => unescape(quoted)?,
        token => is_token(token).then_some(Cow::Borrowed(token))?,
    };
    is_token(name).then_some((name, value))
}

/// What stands between the quotes of a quoted string, if it is one.
fn unescape(quoted: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !quoted.iter().any(|byte| matches!(byte, b'"' | b'\\')) {
        return Some(Cow::Borrowed(quoted));
    }
    let mut plain = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter().copied();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'"' => return None,
            b'\\' => bytes.next()?,
            other => other,
        });
    }
    Some(Cow::Owned(plain))
}

fn is_token(text: &[u8]) -> bool {
    let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(belongs)
}

/// Splits at a separator that is in no quoted string, the last part first.
fn rsplit(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = last_unquoted(text, separator) else { return rest.take() };
        rest = Some(&text[..at]);
        Some(&text[at + 1..])
    })
}

fn last_unquoted(text: &[u8], wanted: u8) -> Option<usize> {
    let mut quoted = false;
    for (at, byte) in text.iter().enumerate().rev() {
        if *byte == b'"' {
            quoted = !quoted || is_escaped(&text[..at]);
        } else if *byte == wanted && !quoted {
            return Some(at);
        }
    }
    None
}

/// True if what follows this part of a quoted string is escaped: two backslashes
/// are but one that is itself escaped.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn named(line: &[u8]) -> Vec<String> {
        let clients = clients(line);
        clients
            .map(|client| client.map_or("-".into(), |address| IpAddr::from(address).to_string()))
            .collect()
    }

    #[test]
    fn the_clients_of_a_line_are_read_from_its_end() {
        for (line, expected) in [
            (r#"for=192.0.2.7"#, &["192.0.2.7"][..]),
            (r#"For="[2001:db8:cafe::17]:4711""#, &["2001:db8:cafe::17"]),
            (r#"for=192.0.2.60;proto=http;by=203.0.113.43"#, &["192.0.2.60"]),
            (r#"proto=http; FOR=192.0.2.60 ;by="[::1]""#, &["192.0.2.60"]),
            (r#"for=192.0.2.43, for=198.51.100.17"#, &["198.51.100.17", "192.0.2.43"]),
            (
                r#"for=192.0.2.43,for="[2001:db8::17]",for=unknown"#,
                &["-", "2001:db8::17", "192.0.2.43"],
            ),
            (r#"for="192.0.2.43:47011""#, &["192.0.2.43"]),
            (r#"for="192.0.2.43:_gazonk""#, &["192.0.2.43"]),
            (r#"for="192\.0.2.\43""#, &["192.0.2.43"]),
            (r#";for=192.0.2.43;"#, &["192.0.2.43"]),
            (r#"for=1.1.1.1;host="a, for=6.6.6.6""#, &["1.1.1.1"]),
            (r#"for=1.1.1.1;host="a\", for=6.6.6.6""#, &["1.1.1.1"]),
            (r#"for=1.1.1.1;host="a;for=6.6.6.6", for=2.2.2.2"#, &["2.2.2.2", "1.1.1.1"]),
            (r#"for=1.1.1.1;host="\\", for=2.2.2.2;host="\\\"""#, &["2.2.2.2", "1.1.1.1"]),
            (r#"for=1.1.1.1;host="", for=2.2.2.2"#, &["2.2.2.2", "1.1.1.1"]),
        ] {
            assert_eq!(named(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn an_element_that_is_malformed_or_names_no_address_names_nobody() {
        for element in [
            r#""#,
            r#";"#,
            r#"proto=https"#,
            r#"for"#,
            r#"for="#,
            r#"for=;proto=https"#,
            r#"for=_hidden"#,
            r#"for="_SEVKISEK""#,
            r#"for=unknown"#,
            r#"for=" 192.0.2.7""#,
            r#"for=192.0.2.7;for=192.0.2.7"#,
            r#"for=192.0.2.7;For="192.0.2.8""#,
            r#"for =192.0.2.7"#,
            r#"for= 192.0.2.7"#,
            r#"for=192.0.2.7 proto=https"#,
            r#"for=192.0.2.7;proto"#,
            r#"for=192.0.2.7;=https"#,
            r#"for=192.0.2.7;pro to=https"#,
            r#"for=192.0.2.7:80"#,
            r#"for=[2001:db8::7]"#,
            r#"for="192.0.2.7"x"#,
            r#"for=x"192.0.2.7""#,
            r#"for="192.0.2.7"#,
            r#"for=192.0.2.7""#,
            r#"for=192.0.2.7;host=a\"#,
            r#"for=192.0.2.7;host="a\""#,
            r#"for=192.0.2.7;host="a"b""#,
            r#"for="fe80::1%eth0""#,
            r#"192.0.2.7"#,
            r#"""#,
            r#"\"#,
        ] {
            assert_eq!(named(element.as_bytes()), ["-"], "{element}");
        }
        assert_eq!(named(b"for=192.0.2.7\xff"), ["-"]);
    }
}
