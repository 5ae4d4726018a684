use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::reload::{Reloader, in_background};

/// How often files are looked at. A change is taken up once it has stayed the same for so
/// long: whoever writes a file may not be done yet.
const PERIOD: Duration = Duration::from_millis(500);

/// Reloads whenever a file has changed from what was `seen`, for ever.
///
/// It is the contents that count: where a file is a link to another, as in a ConfigMap,
/// times and inodes tell nothing.
pub(super) async fn run(reloader: Arc<Reloader>, seen: u64) {
    let (mut taken, mut last) = (seen, seen);
    loop {
        sleep(PERIOD).await;
        let now = contents(reloader.files()).await;
        if now != taken && now == last {
            taken = now;
            in_background(&reloader).await;
        }
        last = now;
    }
}

/// A hash of what is in the files.
pub(super) async fn contents(files: Vec<PathBuf>) -> u64 {
    let read = move || {
        let mut hasher = DefaultHasher::new();
        for file in files {
            read(&file).ok().hash(&mut hasher);
        }
        hasher.finish()
    };
    // Nothing that can panic; the same again then.
    spawn_blocking(read).await.unwrap_or_default()
}

/// As much of a file as a policy may have.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 16 << 20;
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
