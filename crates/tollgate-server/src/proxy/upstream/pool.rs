use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::http1::Http1;

/// Connections that nobody uses, the last used at the end.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<Vec<Http1>>,
    most: usize,
}

/// How long a connection is kept that nobody uses. Many servers close theirs after 60 s or
/// more.
pub(super) const KEPT: Duration = Duration::from_secs(50);

impl Pool {
    pub(super) fn new(most: usize) -> Self {
        Self { idle: Mutex::default(), most }
    }

    /// The connection that was used last and is still open.
    pub(super) fn take(&self, context: &mut Context<'_>) -> Option<Http1> {
        loop {
            let mut connection = self.lock().pop()?;
            connection.poll(context);
            if connection.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, unless there are enough.
    pub(super) fn put(&self, mut connection: Http1) {
        connection.idle_since = Instant::now();
        let mut idle = self.lock();
        if idle.len() < self.most {
            idle.push(connection);
        }
    }

    /// Drops those that were closed, or idle for long.
    pub(super) fn tidy(&self) {
        let mut context = Context::from_waker(Waker::noop());
        self.lock().retain_mut(|connection| {
            connection.poll(&mut context);
            connection.is_ready() && connection.idle_since.elapsed() < KEPT
        });
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Http1>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
