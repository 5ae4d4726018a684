use std::hash::{BuildHasher, RandomState};

/// Offences of a caller that a store is told of at once, and counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StrikeCall {
    /// Names the call, so that it is known if it is made again. Random, since nodes choose it.
    pub id: u64,
    /// How many offences. 0 only looks whether a ban is in force.
    pub count: u32,
}

impl StrikeCall {
    /// A call that was never made.
    #[must_use]
    pub fn new(count: u32) -> Self {
        // From the system: after a fork, hashers of parent and child have the same keys.
        let id = getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(()));
        Self { id, count }
    }

    /// A call that looks what this one has led to, and counts nothing.
    #[must_use]
    pub fn looking(self) -> Self {
        Self { count: 0, ..self }
    }
}
