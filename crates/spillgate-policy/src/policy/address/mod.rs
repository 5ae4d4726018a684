//! Addresses, ranges of addresses, and sets of ranges.

mod range;
mod segments;
mod set;

use std::net::{IpAddr, Ipv6Addr};

pub(crate) use self::range::parse_range;
pub(crate) use self::set::AddressSet;

/// An address in its one form: IPv4 is IPv4 in IPv6 (`::ffff:192.0.2.7`), so that nobody is
/// two callers.
///
/// In two words, since on the way to a decision it is copied several times: copying bytes
/// that were just written makes a processor wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    high: u64,
    low: u64,
}

/// What stands before an IPv4 address in IPv6.
const MAPPED: u64 = 0xffff << 32;

impl Address {
    #[inline]
    pub(crate) fn v4(self) -> Option<u32> {
        (self.high == 0 && self.low & (u64::MAX << 32) == MAPPED).then_some(self.low as u32)
    }

    #[inline]
    pub(crate) fn bits(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }
}

impl From<IpAddr> for Address {
    #[inline]
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self { high: 0, low: MAPPED | u64::from(ip.to_bits()) },
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                Self { high: (bits >> 64) as u64, low: bits as u64 }
            }
        }
    }
}

impl From<Address> for IpAddr {
    #[inline]
    fn from(address: Address) -> Self {
        match address.v4() {
            Some(bits) => Self::V4(bits.into()),
            None => Self::V6(Ipv6Addr::from_bits(address.bits())),
        }
    }
}

/// How many leading bits of an address tell callers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    /// Masks of the bits that do.
    v4: u64,
    v6: (u64, u64),
}

impl Prefixes {
    /// More bits than an address has are all of them.
    pub(crate) fn new(v4: u8, v6: u8) -> Self {
        let ones = |count: u8, of: u8| {
            // Shifting out every bit is an overflow to Rust: the mask of no bits.
            u128::MAX.checked_shl(u32::from(of.saturating_sub(count))).unwrap_or(0)
        };
        let v6 = ones(v6, 128);
        Self { v4: ones(v4, 32) as u64, v6: ((v6 >> 64) as u64, v6 as u64) }
    }

    /// How many bits of an address count.
    pub(crate) fn length(&self, address: Address) -> u8 {
        let ones = match address.v4() {
            Some(_) => (self.v4 as u32).count_ones(),
            None => self.v6.0.count_ones() + self.v6.1.count_ones(),
        };
        ones as u8
    }

    /// The address with all bits after the prefix zero.
    #[inline]
    pub(crate) fn cut(&self, Address { high, low }: Address) -> Address {
        match (Address { high, low }).v4() {
            Some(_) => Address { high, low: low & self.v4 },
            None => Address { high: high & self.v6.0, low: low & self.v6.1 },
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
            let address: IpAddr = address.parse().unwrap();
            let cut = IpAddr::from(Prefixes::new(v4, v6).cut(address.into()));
            assert_eq!(cut.to_string(), expected, "{address} cut to {v4} or {v6} bits");
        }
    }

    #[test]
    fn callers_are_an_ipv4_address_or_64_bits_of_ipv6_by_default() {
        assert_eq!(Prefixes::default(), Prefixes::new(32, 64));
    }
}
