use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tracing::warn;

use super::signals::Signals;

/// The clients of a listener.
pub(super) type Clients = JoinSet<()>;

/// Waits until the clients of all listeners, which have been told to stop, have their
/// replies, but no longer than `longest`. Then nobody is served any more.
///
/// A second signal ends the process at once.
pub(super) async fn drain(
    listeners: Vec<JoinHandle<Clients>>,
    longest: Duration,
    signals: &mut Signals,
) {
    let mut all = Vec::new();
    for listener in listeners {
        all.extend(listener.await);
    }
    let leave = async {
        for clients in &mut all {
            while clients.join_next().await.is_some() {}
        }
    };
    tokio::select! {
        left = timeout(longest, leave) => {
            if left.is_err() {
                let left = all.iter().map(JoinSet::len).sum::<usize>();
                warn!(left, "clients did not read their replies in time");
            }
        }
        () = signals.told_again() => {
            warn!("told to stop again: ending at once, without a snapshot");
            std::process::exit(1);
        }
    }
    for mut clients in all {
        clients.shutdown().await;
    }
}
