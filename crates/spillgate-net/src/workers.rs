//! One single-threaded runtime per core.

use std::cell::Cell;
use std::future::pending;
use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};

/// Threads that serve connections, one per core. A connection stays on its thread: work stealing
/// costs more than an answer that is ready at once.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<Handle>,
    next: AtomicUsize,
}

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(0) };
}

/// The number of workers, at least one. It stays the same while the process runs.
#[must_use]
pub fn count() -> usize {
    static COUNT: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
    *COUNT
}

/// The index of the worker that calls, below [`count`]; 0 on other threads.
#[must_use]
pub fn index() -> usize {
    INDEX.get()
}

impl Workers {
    /// Starts the threads, which live as long as the process.
    /// Fails if the system starts no more threads.
    pub fn start() -> io::Result<Self> {
        let threads = (0..count()).map(|index| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let handle = runtime.handle().clone();
            let work = move || {
                INDEX.set(index);
                runtime.block_on(pending::<()>());
            };
            thread::Builder::new().name(format!("worker-{index}")).spawn(work)?;
            Ok(handle)
        });
        Ok(Self { threads: threads.collect::<io::Result<_>>()?, next: AtomicUsize::new(0) })
    }

    /// The next worker, in turn.
    pub fn next(&self) -> &Handle {
        // Relaxed: connections only have to be spread.
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        &self.threads[turn % self.threads.len()]
    }
}
