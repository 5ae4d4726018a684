//! Connections that no longer speak HTTP, such as WebSockets.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use super::upstream::Http1;

/// The connection to an upstream that has agreed to speak something else.
#[derive(Debug, Default)]
pub(super) struct Upgrade(Mutex<Option<Http1>>);

impl Upgrade {
    pub(super) fn set(&self, connection: Http1) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
    }

    pub(super) fn take(&self) -> Option<Http1> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Passes on whatever either side says, until both have ended, or neither has said anything
/// for so long. `early` is what the client has said already.
pub(super) async fn relay(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    early: Bytes,
    upstream: Http1,
    idle: Duration,
) -> io::Result<()> {
    let (mut upstream, late) = upstream.into_stream().await;
    upstream.write_all(&early).await?;
    client.write_all(&late).await?;
    let moved = AtomicU64::new(0);
    let (from_client, to_client) = tokio::io::split(client);
    let (from_upstream, to_upstream) = tokio::io::split(upstream);
    let both = async {
        let up = copy(from_client, to_upstream, &moved);
        let down = copy(from_upstream, to_client, &moved);
        futures_util::future::try_join(up, down).await.map(|_| ())
    };
    tokio::select! {
        ended = both => ended,
        () = silence(&moved, idle) => Ok(()),
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moved: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        // Relaxed: it is looked at now and then.
        moved.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Ends when nothing has moved for so long, within a tenth of that.
async fn silence(moved: &AtomicU64, idle: Duration) {
    const LOOKS: u32 = 10;
    let (mut seen, mut looks) = (0, 0);
    while looks < LOOKS {
        sleep(idle / LOOKS).await;
        let now = moved.load(Ordering::Relaxed);
        looks = if now == seen { looks + 1 } else { 0 };
        seen = now;
    }
}
