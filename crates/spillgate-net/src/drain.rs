use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tracing::warn;

use crate::Activity;

/// The connections of a listener.
pub type OpenConnections = JoinSet<()>;

/// Announces a graceful shutdown to connections: clients are asked to connect elsewhere.
#[derive(Debug, Default)]
pub struct DrainSignal {
    /// Read for every response.
    is_draining: AtomicBool,
    changed: watch::Sender<bool>,
}

impl DrainSignal {
    /// Starts to drain.
    pub fn start(&self) {
        // Relaxed: a response that misses it is followed by another.
        self.is_draining.store(true, Ordering::Relaxed);
        self.changed.send_replace(true);
    }

    /// True once the server is draining.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Ready when a connection over HTTP/2 gets a `GOAWAY`: the server is draining, and the client
    /// has made its first request.
    pub async fn goaway(&self, activity: &Activity) {
        let _ = self.changed.subscribe().wait_for(|is_draining| *is_draining).await;
        activity.first_request().await;
    }
}

/// Waits until the connections of stopped listeners have ended, and closes the others after
/// `limit`.
pub async fn drain(listeners: Vec<JoinHandle<OpenConnections>>, limit: Duration) {
    let mut all = Vec::new();
    for listener in listeners {
        all.extend(listener.await);
    }
    let close = async {
        for connections in &mut all {
            while connections.join_next().await.is_some() {}
        }
    };
    if timeout(limit, close).await.is_err() {
        let left = all.iter().map(JoinSet::len).sum::<usize>();
        warn!(left, "closed connections that did not read their replies in time");
    }
    for mut connections in all {
        connections.shutdown().await;
    }
}
