use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The bits before the IPv4 address in `::ffff:192.0.2.7`.
const MAPPED: u8 = 96;

/// Reads an address or a CIDR range. The error says what would be right.
pub(crate) fn parse_range(text: &str) -> Result<IpNet, String> {
    let wrong = |right: &str| format!("{text:?} is not an address range; {right}");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| {
        wrong("use an address such as 192.0.2.7, or a range such as 192.0.2.0/24 or 2001:db8::/32")
    })?;
    let (family, most) = if address.is_ipv4() { ("IPv4", 32) } else { ("IPv6", 128) };
    let bits = bits.map_or(Some(most), number);
    let range = bits.and_then(|bits| IpNet::new(address, bits).ok()).ok_or_else(|| {
        wrong(&format!("an {family} prefix has at most {most} bits, in decimal digits"))
    })?;
    if address != address.to_canonical() && range.prefix_len() < MAPPED {
        return Err(wrong("write a range of IPv4 addresses as IPv4"));
    }
    if range != range.trunc() {
        let right = canonical_range(range);
        return Err(wrong(&format!("its address has bits beyond the prefix; use {right}")));
    }
    Ok(canonical_range(range))
}

/// A range without host bits, as IPv4 if it is IPv4 in IPv6.
pub(super) fn canonical_range(range: IpNet) -> IpNet {
    let range = range.trunc();
    match range {
        IpNet::V4(_) => range,
        IpNet::V6(v6) => unmapped(v6).map_or(range, IpNet::V4),
    }
}

fn unmapped(range: Ipv6Net) -> Option<Ipv4Net> {
    let bits = range.prefix_len().checked_sub(MAPPED)?;
    Ipv4Net::new(range.addr().to_ipv4_mapped()?, bits).ok()
}

fn number(digits: &str) -> Option<u8> {
    // Or "+8" would be a number.
    let only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| only_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ranges_are_read() {
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7/32"),
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:db8::7", "2001:db8::7/128"),
            ("2001:DB8::/32", "2001:db8::/32"),
            ("::/0", "::/0"),
            ("::ffff:192.0.2.7", "192.0.2.7/32"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
        ] {
            assert_eq!(parse_range(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_range_is_told_what_would_be_right() {
        let examples =
            "use an address such as 192.0.2.7, or a range such as 192.0.2.0/24 or 2001:db8::/32";
        let v4 = "an IPv4 prefix has at most 32 bits, in decimal digits";
        let v6 = "an IPv6 prefix has at most 128 bits, in decimal digits";
        for (text, right) in [
            ("", examples),
            ("/", examples),
            ("/8", examples),
            ("proxy.example", examples),
            (" 10.0.0.0/8", examples),
            ("10.0.0.0 /8", examples),
            ("10.0.0/8", examples),
            ("010.0.0.0/8", examples),
            ("10.0.0.1:80", examples),
            ("[2001:db8::]/32", examples),
            ("fe80::1%eth0", examples),
            ("10.0.0.0/8 ", v4),
            ("10.0.0.0/33", v4),
            ("10.0.0.0/256", v4),
            ("10.0.0.0/", v4),
            ("10.0.0.0/+8", v4),
            ("10.0.0.0/-8", v4),
            ("10.0.0.0/8/8", v4),
            ("10.0.0.0/255.0.0.0", v4),
            ("2001:db8::/129", v6),
            ("10.0.0.1/8", "its address has bits beyond the prefix; use 10.0.0.0/8"),
            ("2001:db8::1/32", "its address has bits beyond the prefix; use 2001:db8::/32"),
            ("::ffff:10.0.0.1/104", "its address has bits beyond the prefix; use 10.0.0.0/8"),
            ("::ffff:10.0.0.0/8", "write a range of IPv4 addresses as IPv4"),
        ] {
            let message = parse_range(text).unwrap_err();
            assert_eq!(message, format!("{text:?} is not an address range; {right}"));
        }
    }
}
