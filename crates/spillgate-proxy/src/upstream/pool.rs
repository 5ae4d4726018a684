use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::http1::Http1;
use spillgate_net::workers;

/// Idle connections, one pool per worker: a connection is registered with the runtime of the
/// thread that made it.
#[derive(Debug)]
pub(super) struct Pool {
    /// Per worker, the most recently used last.
    idle: Box<[Mutex<Vec<Http1>>]>,
    /// Per worker.
    max: usize,
}

/// How long an idle connection is kept. Many servers close theirs after 60 s or more.
pub(super) const KEPT: Duration = Duration::from_secs(50);

impl Pool {
    pub(super) fn new(max: usize) -> Self {
        let idle = (0..workers::count()).map(|_| Mutex::default()).collect::<Box<[_]>>();
        let max = max.div_ceil(idle.len());
        Self { idle, max }
    }

    /// The most recently used connection that is still open.
    pub(super) fn take(&self, context: &mut Context<'_>) -> Option<Http1> {
        loop {
            let mut connection = lock(self.own()).pop()?;
            connection.poll(context);
            if connection.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, unless the pool is full.
    pub(super) fn put(&self, mut connection: Http1) {
        connection.idle_since = Instant::now();
        let mut idle = lock(self.own());
        if idle.len() < self.max {
            idle.push(connection);
        }
    }

    /// Drops connections that were closed, or idle for too long.
    pub(super) fn evict(&self) {
        let mut context = Context::from_waker(Waker::noop());
        for idle in &self.idle {
            lock(idle).retain_mut(|connection| {
                connection.poll(&mut context);
                connection.is_ready() && connection.idle_since.elapsed() < KEPT
            });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.idle.iter().map(|idle| lock(idle).len()).sum()
    }

    fn own(&self) -> &Mutex<Vec<Http1>> {
        &self.idle[workers::index()]
    }
}

fn lock(idle: &Mutex<Vec<Http1>>) -> MutexGuard<'_, Vec<Http1>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
