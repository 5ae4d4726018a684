//! Addresses, ranges of addresses, and sets of ranges.

mod range;
mod segments;
mod set;

use std::net::IpAddr;

pub(crate) use self::range::parse_range;
pub(crate) use self::set::AddressSet;

/// An address in its one form: IPv4 in IPv6 (`::ffff:192.0.2.7`) is IPv4, so that
/// nobody is two callers.
#[inline]
pub(crate) fn canonical(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// How many leading bits of an address tell callers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    v4: u8,
    v6: u8,
}

impl Prefixes {
    /// More bits than an address has are all of them.
    pub(crate) fn new(v4: u8, v6: u8) -> Self {
        Self { v4: v4.min(32), v6: v6.min(128) }
    }

    /// The address with all bits after the prefix zero, in its one form.
    #[inline]
    pub(crate) fn cut(&self, ip: IpAddr) -> IpAddr {
        // Shifting out every bit is an overflow to Rust: the mask of an empty prefix.
        match canonical(ip) {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.v4)).unwrap_or(0);
                IpAddr::V4((ip.to_bits() & mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.v6)).unwrap_or(0);
                IpAddr::V6((ip.to_bits() & mask).into())
            }
        }
    }
}

/// All of an IPv4 address, and the 64 bits of an IPv6 address that one subscriber
/// usually has to himself.
impl Default for Prefixes {
    fn default() -> Self {
        Self::new(32, 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_cut_to_its_prefix() {
        for (v4, v6, address, expected) in [
            (32, 64, "192.0.2.7", "192.0.2.7"),
            (24, 64, "192.0.2.7", "192.0.2.0"),
            (1, 64, "192.0.2.7", "128.0.0.0"),
            (0, 64, "192.0.2.7", "0.0.0.0"),
            (200, 64, "192.0.2.7", "192.0.2.7"),
            (32, 64, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            (32, 56, "2001:db8:1:2ff:3:4:5:6", "2001:db8:1:200::"),
            (32, 128, "2001:db8::7", "2001:db8::7"),
            (32, 0, "2001:db8::7", "::"),
            (32, 200, "2001:db8::7", "2001:db8::7"),
            (24, 64, "::ffff:192.0.2.7", "192.0.2.0"),
        ] {
            let cut = Prefixes::new(v4, v6).cut(address.parse().unwrap());
            assert_eq!(cut.to_string(), expected, "{address} cut to {v4} or {v6} bits");
        }
    }

    #[test]
    fn callers_are_an_ipv4_address_or_64_bits_of_ipv6_by_default() {
        assert_eq!(Prefixes::default(), Prefixes::new(32, 64));
    }
}
