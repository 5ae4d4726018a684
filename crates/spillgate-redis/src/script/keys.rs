use smallvec::SmallVec;

use crate::Name;

/// A Redis key.
pub type Key = SmallVec<[u8; 64]>;

/// The keys of a store, which share a prefix: one key for each thing that is kept, since a Cluster
/// that moves a slot runs no script over several of its keys.
///
/// Names are in braces: the hash tag of a Cluster.
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

    /// The state of a caller.
    #[must_use]
    pub fn state(&self, name: &Name) -> Key {
        self.key("", name)
    }

    /// When a limit was first used.
    #[must_use]
    pub fn born(&self, name: &Name) -> Key {
        self.key("born:", name)
    }

    /// A reservation.
    #[must_use]
    pub fn deposit(&self, name: &Name) -> Key {
        self.key("deposit:", name)
    }

    /// The nodes that are alive: in the slot of the edits, since nodes ask for both at once.
    #[must_use]
    pub fn nodes(&self) -> Key {
        let mut key = Key::from_slice(self.prefix.as_bytes());
        key.extend_from_slice(b"nodes:{edits}");
        key
    }

    /// Who holds permits of a caller, and how many.
    #[must_use]
    pub fn permits(&self, name: &Name) -> Key {
        self.key("held:", name)
    }

    /// The strikes of a caller.
    #[must_use]
    pub fn strikes(&self, name: &Name) -> Key {
        self.key("strikes:", name)
    }

    /// Edits made at run time.
    #[must_use]
    pub fn edits(&self) -> Key {
        let mut key = Key::from_slice(self.prefix.as_bytes());
        key.extend_from_slice(b"{edits}");
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

/// A byte as two hexadecimal digits.
fn hex(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)])
}
