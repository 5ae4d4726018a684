use crate::counter::Counter;

/// What leases have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Callers who are known.
    pub callers: u64,
    /// Calls that were allowed out of a slice.
    pub allowed: u64,
    /// Calls that were denied by what the engine had said of the bucket before.
    pub denied: u64,
    /// Takes that were sent to the engine.
    pub takes: u64,
    /// Slices of which the rest was given back.
    pub given_back: u64,
    /// Slices that could not be given back, as others had come after them or the engine did
    /// not answer.
    pub lost: u64,
}

/// What is counted outside of the table's locks.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) takes: Counter,
    pub(super) given_back: Counter,
    pub(super) lost: Counter,
}

impl Counters {
    pub(super) fn stats(&self) -> LeaseStats {
        LeaseStats {
            takes: self.takes.value(),
            given_back: self.given_back.value(),
            lost: self.lost.value(),
            ..LeaseStats::default()
        }
    }
}
