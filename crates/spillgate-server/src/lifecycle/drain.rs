use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tracing::warn;

/// The clients of a listener.
pub(super) type Clients = JoinSet<()>;

/// Waits until the clients of all listeners, which have been told to stop, have their
/// replies, but no longer than `longest`. Then nobody is served any more.
pub(super) async fn drain(listeners: Vec<JoinHandle<Clients>>, longest: Duration) {
    let mut all = Vec::new();
    for listener in listeners {
        all.extend(listener.await);
    }
    let leave = async {
        for clients in &mut all {
            while clients.join_next().await.is_some() {}
        }
    };
    if timeout(longest, leave).await.is_err() {
        let left = all.iter().map(JoinSet::len).sum::<usize>();
        warn!(left, "clients did not read their replies in time");
    }
    for mut clients in all {
        clients.shutdown().await;
    }
}
