use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::reload::{Reloader, in_background};
use crate::settings::fingerprint;

/// How often files are read. A change is applied once it has stayed the same for this long: the
/// writer may not be done yet.
const PERIOD: Duration = Duration::from_millis(500);

/// Reloads whenever files differ from what the last reload has seen, forever.
///
/// Contents are compared: behind a symbolic link, as in a ConfigMap, times and inodes do not
/// tell.
pub(super) async fn run(reloader: Arc<Reloader>) {
    let mut last = reloader.seen();
    loop {
        sleep(PERIOD).await;
        let files = reloader.files();
        // Nothing there can panic; nothing new then.
        let Ok(now) = spawn_blocking(move || fingerprint(None, &files)).await else { continue };
        if now != reloader.seen() && now == last {
            in_background(&reloader).await;
        }
        last = now;
    }
}
