use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::reload::{Reloader, in_background};
use crate::settings::read_file;

/// How often files are looked at. A change is taken up once it has stayed the same for so
/// long: whoever writes a file may not be done yet.
const PERIOD: Duration = Duration::from_millis(500);

/// Reloads whenever a file has changed from what the last reload has seen, for ever.
///
/// It is the contents that count: where a file is a link to another, as in a ConfigMap,
/// times and inodes tell nothing.
pub(super) async fn run(reloader: Arc<Reloader>) {
    let mut last = reloader.seen();
    loop {
        sleep(PERIOD).await;
        let files = reloader.files();
        // Nothing that can panic; nothing new then.
        let Ok(now) = spawn_blocking(move || contents(&files)).await else { continue };
        if now != reloader.seen() && now == last {
            in_background(&reloader).await;
        }
        last = now;
    }
}

/// A hash of what is in the files.
pub(super) fn contents(files: &[PathBuf]) -> u64 {
    // As much as a policy may have.
    const MEBIBYTES: u64 = 16;
    let mut hasher = DefaultHasher::new();
    for file in files {
        read_file(file, MEBIBYTES).ok().hash(&mut hasher);
    }
    hasher.finish()
}
