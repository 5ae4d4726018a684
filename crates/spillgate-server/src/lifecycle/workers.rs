use std::cell::Cell;
use std::future::pending;
use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};

/// Threads that clients are served on, one for each processor. A client stays on the thread
/// that it came to.
///
/// Tokio's own threads take work from each other, and wake each other to do so: a call that is
/// answered at once costs more to hand around than to answer.
#[derive(Debug)]
pub(super) struct Workers {
    threads: Vec<Handle>,
    next: AtomicUsize,
}

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(0) };
}

/// How many workers there are, at least one. Processors may come and go, and threads do not.
pub(crate) fn count() -> usize {
    static COUNT: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
    *COUNT
}

/// The place of the worker that asks, below [`count`].
pub(crate) fn place() -> usize {
    PLACE.get()
}

impl Workers {
    /// Starts the threads, which live as long as the process.
    pub(super) fn start() -> io::Result<Self> {
        let threads = (0..count()).map(|place| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let handle = runtime.handle().clone();
            let work = move || {
                PLACE.set(place);
                runtime.block_on(pending::<()>());
            };
            thread::Builder::new().name(format!("clients-{place}")).spawn(work)?;
            Ok(handle)
        });
        Ok(Self { threads: threads.collect::<io::Result<_>>()?, next: AtomicUsize::new(0) })
    }

    /// Whose turn it is.
    pub(super) fn next(&self) -> &Handle {
        // Relaxed: that clients are spread is all that matters.
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        &self.threads[turn % self.threads.len()]
    }
}
