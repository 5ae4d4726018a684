//! What is changed at run time, in the form in which it is saved and shared between nodes.

use spillgate::Timestamp;

/// One change made at run time: an entry of a list, an override, or a ban.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// What is changed. Of two edits with the same key, the later one counts.
    pub key: String,
    /// How it is, as JSON; `None` if the change was undone, so that the policy counts again.
    pub value: Option<String>,
    /// When it ends by itself, by the store's clock.
    pub until: Option<Timestamp>,
}

impl Edit {
    /// A change.
    #[must_use]
    pub fn new(key: String, value: Option<String>, until: Option<Timestamp>) -> Self {
        Self { key, value, until }
    }
}

// Keys and values may hold secrets.
debug_fields!(self: Edit { until: self.until });

/// Edits of all nodes, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditLog {
    /// The number of the last one: ask for those since then the next time. It is smaller than
    /// the one that was asked for if the store has lost its state.
    pub version: u64,
    /// Those since the number that was asked for. Of several with the same key, the last.
    pub edits: Vec<Edit>,
}

impl EditLog {
    /// Edits up to a version.
    #[must_use]
    pub fn new(version: u64, edits: Vec<Edit>) -> Self {
        Self { version, edits }
    }
}
