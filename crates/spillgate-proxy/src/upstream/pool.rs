use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::http1::Http1;
use spillgate_net::workers;

/// Connections that nobody uses, those of each worker apart: what arrives on a connection is
/// heard of by the thread that has made it.
#[derive(Debug)]
pub(super) struct Pool {
    /// For each worker, the last used at the end.
    idle: Box<[Mutex<Vec<Http1>>]>,
    /// How many are kept for each.
    most: usize,
}

/// How long a connection is kept that nobody uses. Many servers close theirs after 60 s or
/// more.
pub(super) const KEPT: Duration = Duration::from_secs(50);

impl Pool {
    pub(super) fn new(most: usize) -> Self {
        let idle = (0..workers::count()).map(|_| Mutex::default()).collect::<Box<[_]>>();
        let most = most.div_ceil(idle.len());
        Self { idle, most }
    }

    /// The connection that was used last and is still open.
    pub(super) fn take(&self, context: &mut Context<'_>) -> Option<Http1> {
        loop {
            let mut connection = lock(self.own()).pop()?;
            connection.poll(context);
            if connection.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, unless there are enough.
    pub(super) fn put(&self, mut connection: Http1) {
        connection.idle_since = Instant::now();
        let mut idle = lock(self.own());
        if idle.len() < self.most {
            idle.push(connection);
        }
    }

    /// Drops those that were closed, or idle for long.
    pub(super) fn tidy(&self) {
        let mut context = Context::from_waker(Waker::noop());
        for idle in &self.idle {
            lock(idle).retain_mut(|connection| {
                connection.poll(&mut context);
                connection.is_ready() && connection.idle_since.elapsed() < KEPT
            });
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.idle.iter().map(|idle| lock(idle).len()).sum()
    }

    /// Those of the worker that asks.
    fn own(&self) -> &Mutex<Vec<Http1>> {
        &self.idle[workers::index()]
    }
}

fn lock(idle: &Mutex<Vec<Http1>>) -> MutexGuard<'_, Vec<Http1>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
