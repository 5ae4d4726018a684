use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that clients may take together for requests that are not whole and for replies
/// that they have not read.
///
/// Once half of it is taken, every connection has [`FEW`] bytes for replies before its requests
/// wait. Once all of it is, a connection is closed that would have to be waited for and holds
/// more than [`SHARE`]. So together they take no more than the budget, a share for each, and
/// what is being carried out at the moment.
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

// Relaxed throughout: whoever sees an older number sees the next one in time.
impl Budget {
    /// Enough for some thirty clients that do not read before anyone has less room.
    pub(super) const DEFAULT: usize = 64 * 1024 * 1024;

    pub(super) const fn new(bytes: usize) -> Self {
        Self { bytes, held: AtomicUsize::new(0) }
    }

    /// What a connection that begins holds of it.
    pub(super) fn open(&self) -> Held<'_> {
        Held { budget: self, bytes: 0 }
    }

    /// How many bytes of replies may wait to be read, of a connection that may have `most`.
    pub(super) fn backlog(&self, most: usize) -> usize {
        if self.held() < self.bytes / 2 { most } else { most.min(FEW) }
    }

    /// Bytes that connections hold, but for what each may hold uncounted.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// What one connection holds of a [`Budget`].
#[derive(Debug)]
pub(super) struct Held<'b> {
    budget: &'b Budget,
    bytes: usize,
}

impl Held<'_> {
    /// Counts what the connection holds now.
    pub(super) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes.saturating_sub(FREE));
        if self.bytes > before {
            self.budget.held.fetch_add(self.bytes - before, Ordering::Relaxed);
        } else if self.bytes < before {
            self.budget.held.fetch_sub(before - self.bytes, Ordering::Relaxed);
        }
    }

    /// True if the connection has to go for others to be served.
    pub(super) fn is_too_much(&self) -> bool {
        self.bytes > SHARE - FREE && self.budget.held() >= self.budget.bytes
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.set(0);
    }
}
