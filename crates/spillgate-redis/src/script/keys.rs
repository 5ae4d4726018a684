use smallvec::SmallVec;

use crate::Name;

/// A key of Redis.
pub type Key = SmallVec<[u8; 64]>;

/// The keys under which Redis keeps what is ours: they all begin with one prefix.
///
/// A name stands in braces, which is what a cluster places a key by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

impl Default for Keys {
    fn default() -> Self {
        Self::new("spillgate:")
    }
}

impl Keys {
    /// Keys that begin with `prefix`.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Where the state of a caller is.
    #[must_use]
    pub fn state(&self, name: &Name) -> Key {
        self.key("", name)
    }

    /// Where it is noted when something was first asked for.
    #[must_use]
    pub fn born(&self, name: &Name) -> Key {
        self.key("born:", name)
    }

    /// Where something is that was spent in advance.
    #[must_use]
    pub fn deposit(&self, name: &Name) -> Key {
        self.key("deposit:", name)
    }

    /// Where the nodes are that are alive.
    #[must_use]
    pub fn nodes(&self) -> Key {
        let mut key = Key::from_slice(self.prefix.as_bytes());
        key.extend_from_slice(b"nodes");
        key
    }

    fn key(&self, what: &str, name: &Name) -> Key {
        let mut key = Key::from_slice(self.prefix.as_bytes());
        key.extend_from_slice(what.as_bytes());
        key.push(b'{');
        key.extend(name.as_bytes().iter().flat_map(|byte| hex(*byte)));
        key.push(b'}');
        key
    }
}

/// A byte as two digits.
fn hex(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)])
}
