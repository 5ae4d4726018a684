use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory of all connections for incomplete requests and unread replies.
///
/// When half of it is in use, a connection has [`FEW`] bytes for replies before its requests wait;
/// when all of it is, a blocked connection that holds more than [`SHARE`] is closed.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
    held: AtomicUsize,
}

/// What a connection may hold uncounted. Few connections ever hold more.
const FREE: usize = 8 * 1024;

/// How much a connection may hold when all of the budget is taken.
const SHARE: usize = 16 * 1024;

/// How many bytes of replies a connection may have unread when half of the budget is taken.
const FEW: usize = 4 * 1024;

// Relaxed throughout: an older number does no harm.
impl Budget {
    /// Enough for some thirty clients that do not read before anyone has less room.
    pub(super) const DEFAULT: usize = 64 * 1024 * 1024;

    pub(super) const fn new(bytes: usize) -> Self {
        Self { bytes, held: AtomicUsize::new(0) }
    }

    pub(super) fn open(&self) -> Held<'_> {
        Held { budget: self, bytes: 0 }
    }

    /// Bytes of unread replies that a connection may have, at most `most`.
    pub(super) fn backlog(&self, most: usize) -> usize {
        if self.held() < self.bytes / 2 { most } else { most.min(FEW) }
    }

    /// Bytes that connections hold, without the uncounted ones.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub(super) struct Held<'b> {
    budget: &'b Budget,
    bytes: usize,
}

impl Held<'_> {
    pub(super) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes.saturating_sub(FREE));
        if self.bytes > before {
            self.budget.held.fetch_add(self.bytes - before, Ordering::Relaxed);
        } else if self.bytes < before {
            self.budget.held.fetch_sub(before - self.bytes, Ordering::Relaxed);
        }
    }

    /// True if the connection has to be closed for the others.
    pub(super) fn is_too_much(&self) -> bool {
        self.bytes > SHARE - FREE && self.budget.held() >= self.budget.bytes
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.set(0);
    }
}
