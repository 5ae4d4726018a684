use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::policy::address::Address;

/// An address as proxies write it: bare, or with brackets or a port.
///
/// A zone (`fe80::1%eth0`) means something on one machine only, so it is refused.
pub(super) fn parse(text: &[u8]) -> Option<Address> {
    let text = std::str::from_utf8(text).ok()?;
    let address: IpAddr = text.parse().ok().or_else(|| with_port(text))?;
    Some(address.into())
}

/// Reads `192.0.2.7:80`, `[2001:db8::7]` or `[2001:db8::7]:80`.
fn with_port(text: &str) -> Option<IpAddr> {
    let (address, rest) = if let Some(bracketed) = text.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']')?;
        (address.parse::<Ipv6Addr>().ok()?.into(), rest)
    } else {
        let (address, rest) = text.split_at(text.find(':')?);
        (address.parse::<Ipv4Addr>().ok()?.into(), rest)
    };
    let complete = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    complete.then_some(address)
}

/// A port that RFC 7239 lets a proxy hide (`_x7`) leaves the address what it is.
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(name) => {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        }
        // Or "+80" would be a number.
        None => text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_brackets_and_ports() {
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:80", "192.0.2.7"),
            ("192.0.2.7:65535", "192.0.2.7"),
            ("192.0.2.7:_x-7", "192.0.2.7"),
            ("2001:db8::7", "2001:db8::7"),
            ("2001:DB8:0::7", "2001:db8::7"),
            ("2001:db8::7:443", "2001:db8::7:443"),
            ("[2001:db8::7]", "2001:db8::7"),
            ("[2001:db8::7]:443", "2001:db8::7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("[::ffff:192.0.2.7]:80", "192.0.2.7"),
        ] {
            let address = parse(text.as_bytes()).map(|address| IpAddr::from(address).to_string());
            assert_eq!(address.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_an_address_is_refused() {
        for text in [
            "",
            " ",
            "unknown",
            "_hidden",
            "-",
            "localhost",
            "192.0.2",
            "192.0.2.256",
            "192.0.2.07",
            "192.0.2.7 ",
            "192.0.2.7:",
            "192.0.2.7:65536",
            "192.0.2.7:+80",
            "192.0.2.7:http",
            "192.0.2.7:_",
            "192.0.2.7:80:80",
            "192.0.2.7/32",
            "\"192.0.2.7\"",
            "[192.0.2.7]",
            "[192.0.2.7]:80",
            "fe80::1%eth0",
            "fe80::1%1",
            "[fe80::1%1]:80",
            "[2001:db8::7",
            "2001:db8::7]",
            "[2001:db8::7]:",
            "[2001:db8::7]443",
            "[[2001:db8::7]]",
            "[]",
            "[",
            ":",
            "1.1.1.1, 2.2.2.2",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"192.0.2.7\xff"), None);
    }
}
