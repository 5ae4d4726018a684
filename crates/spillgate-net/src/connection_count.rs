use std::sync::atomic::{AtomicU64, Ordering};

/// How many connections were accepted, and how many are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connections {
    /// Accepted since the start.
    pub accepted: u64,
    /// Open now.
    pub open: u64,
}

/// Counts connections.
#[derive(Debug, Default)]
pub struct ConnectionCount {
    accepted: AtomicU64,
    closed: AtomicU64,
}

// Relaxed throughout: counts order nothing.
impl ConnectionCount {
    /// Counts a connection as open for as long as the result lives.
    pub fn open(&self) -> OpenConnection<'_> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self)
    }

    /// The counts at this moment.
    pub fn read(&self) -> Connections {
        // Closed first, so that there are never more closed than accepted.
        let closed = self.closed.load(Ordering::Relaxed);
        let accepted = self.accepted.load(Ordering::Relaxed);
        Connections { accepted, open: accepted.saturating_sub(closed) }
    }
}

/// A connection that counts as open.
#[derive(Debug)]
#[must_use]
pub struct OpenConnection<'c>(&'c ConnectionCount);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
    }
}
