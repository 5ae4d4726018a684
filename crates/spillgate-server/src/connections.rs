use std::sync::atomic::{AtomicU64, Ordering};

/// How many connections there were, and are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connections {
    /// Those that were opened.
    pub accepted: u64,
    /// Those that are open.
    pub open: u64,
}

/// Counts connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCount {
    accepted: AtomicU64,
    closed: AtomicU64,
}

// Relaxed throughout: counts order nothing.
impl ConnectionCount {
    /// Counts one as open for as long as the result lives.
    pub(crate) fn open(&self) -> Open<'_> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Open(self)
    }

    pub(crate) fn read(&self) -> Connections {
        // Closed first, so that there are never more closed than accepted.
        let closed = self.closed.load(Ordering::Relaxed);
        let accepted = self.accepted.load(Ordering::Relaxed);
        Connections { accepted, open: accepted.saturating_sub(closed) }
    }
}

/// A connection that counts as open.
pub(crate) struct Open<'c>(&'c ConnectionCount);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
    }
}
