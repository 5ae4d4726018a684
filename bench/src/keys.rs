//! The keys of callers, laid out in the order in which they will be asked for.
//!
//! A limiter is measured by the cache misses it causes, so the harness must cause
//! none: a run reads its keys from one end of a buffer to the other.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

/// A caller of the benchmark, from 0 up.
pub type Caller = u32;

/// One sequence of callers as each kind of key that some peer wants.
#[derive(Default)]
pub struct KeySet {
    text: FlatText,
    /// For limiters that can only be asked with a `&String`.
    owned: Vec<String>,
    addresses: Vec<IpAddr>,
}

impl KeySet {
    pub fn new(callers: impl IntoIterator<Item = Caller>) -> Self {
        let mut set = Self::default();
        let mut text = String::new();
        for caller in callers {
            let address = address_of(caller);
            text.clear();
            write!(text, "{address}").expect("writing to a string does not fail");
            set.text.push(&text);
            set.owned.push(text.as_str().to_owned());
            set.addresses.push(IpAddr::V4(address));
        }
        set
    }

    /// The same caller `times` times.
    pub fn repeat(caller: Caller, times: usize) -> Self {
        Self::new(std::iter::repeat_n(caller, times))
    }

    pub fn len(&self) -> usize {
        self.addresses.len()
    }
}

/// A buffer that a peer reads its keys from.
pub trait KeyBuffer: Sync {
    type Key: ?Sized;

    fn of(set: &KeySet) -> &Self;
    fn get(&self, index: usize) -> &Self::Key;
}

/// Text end to end, and where each key ends.
#[derive(Default)]
pub struct FlatText {
    bytes: String,
    ends: Vec<u32>,
}

impl FlatText {
    fn push(&mut self, key: &str) {
        self.bytes.push_str(key);
        let end = u32::try_from(self.bytes.len()).expect("keys of less than 4 GiB in all");
        self.ends.push(end);
    }
}

impl KeyBuffer for FlatText {
    type Key = str;

    fn of(set: &KeySet) -> &Self {
        &set.text
    }

    #[inline]
    fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start as usize..self.ends[index] as usize]
    }
}

impl KeyBuffer for Vec<String> {
    type Key = String;

    fn of(set: &KeySet) -> &Self {
        &set.owned
    }

    #[inline]
    fn get(&self, index: usize) -> &String {
        &self[index]
    }
}

impl KeyBuffer for Vec<IpAddr> {
    type Key = IpAddr;

    fn of(set: &KeySet) -> &Self {
        &set.addresses
    }

    #[inline]
    fn get(&self, index: usize) -> &IpAddr {
        &self[index]
    }
}

/// An address for each caller, no two the same and none next to the other: a
/// sequence of odd multiplications and shifts, each of which can be undone.
fn address_of(caller: Caller) -> Ipv4Addr {
    let mut bits = caller.wrapping_mul(0x9E37_79B1);
    bits ^= bits >> 15;
    bits = bits.wrapping_mul(0x85EB_CA77);
    bits ^= bits >> 13;
    Ipv4Addr::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn callers_have_keys_of_their_own() {
        let keys = KeySet::new(0..100_000);
        let distinct: HashSet<&str> = (0..keys.len()).map(|index| keys.text.get(index)).collect();
        assert_eq!(distinct.len(), keys.len());
        assert!(distinct.iter().all(|key| (7..=15).contains(&key.len())));
    }
}
