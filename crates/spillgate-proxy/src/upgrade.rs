//! Connections that have switched protocols, such as WebSockets.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use spillgate_tower::HeldPermits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::streams::stalled;
use super::upstream::{Http1, InFlight};

#[derive(Debug, Default)]
pub(super) struct Upgrade(Mutex<Option<Switched>>);

/// A connection to an upstream that has switched protocols, and what is held until it is closed.
#[derive(Debug)]
pub(super) struct Switched {
    pub(super) connection: Http1,
    pub(super) in_flight: InFlight,
    /// Of concurrency limits.
    pub(super) permits: Option<HeldPermits>,
}

impl Upgrade {
    pub(super) fn set(&self, switched: Switched) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(switched);
    }

    pub(super) fn take(&self) -> Option<Switched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Copies bytes both ways, until both sides have ended, or neither has sent anything for `idle`.
/// `early` is what the client has sent already.
pub(super) async fn relay(
    client: impl AsyncRead + AsyncWrite + Unpin,
    early: Bytes,
    upstream: Http1,
    idle: Duration,
) -> io::Result<()> {
    let (upstream, late) = upstream.into_stream().await;
    let moved = AtomicU64::new(0);
    let (from_client, to_client) = tokio::io::split(client);
    let (from_upstream, to_upstream) = tokio::io::split(upstream);
    let both = async {
        let up = copy((&*early).chain(from_client), to_upstream, &moved);
        let down = copy((&*late).chain(from_upstream), to_client, &moved);
        futures_util::future::try_join(up, down).await.map(|_| ())
    };
    tokio::select! {
        ended = both => ended,
        () = stalled(idle, || Some(moved.load(Ordering::Relaxed))) => Ok(()),
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
        // TLS buffers what a full socket refuses, until the next write or flush.
        to.flush().await?;
        // Relaxed: it is only sampled.
        moved.fetch_add(count as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{BufWriter, duplex};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_stays_in_a_buffer() {
        let (mut speaker, from) = duplex(64);
        let (to, mut listener) = duplex(64);
        let moved = AtomicU64::new(0);
        let mut heard = [0; 5];
        let talk = async {
            speaker.write_all(b"hello").await.unwrap();
            timeout(Duration::from_secs(1), listener.read_exact(&mut heard)).await
        };
        tokio::select! {
            ended = copy(from, BufWriter::new(to), &moved) => ended.unwrap(),
            talked = talk => assert!(talked.is_ok(), "it stays in a buffer"),
        }
        assert_eq!(&heard, b"hello");
    }
}
