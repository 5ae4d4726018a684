use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// More than any reply: the slots of a fragmented Cluster take a few MiB.
const MOST: usize = 16 << 20;

/// A stream that fails if more is received after a write than any reply can be.
///
/// Otherwise an endless reply would be buffered until memory runs out.
#[derive(Debug)]
pub(super) struct Bounded<S> {
    stream: S,
    /// How much may still be received.
    left: usize,
}

impl<S> Bounded<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, left: MOST }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::Error::other("the reply exceeds 16 MiB")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.left = self.left.saturating_sub(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.left = MOST;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, join, repeat, sink};

    use super::*;

    /// Reads until it is refused, and returns how much that was.
    async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> usize {
        let (mut bytes, mut all) = (vec![0; 1 << 16], 0);
        while let Ok(read) = stream.read(&mut bytes).await {
            all += read;
            assert!(all <= MOST, "it goes on");
        }
        all
    }

    #[tokio::test]
    async fn what_has_no_end_is_read_only_so_far_after_each_write() {
        let mut stream = Bounded::new(join(repeat(1), sink()));
        assert_eq!(read_all(&mut stream).await, MOST);
        stream.write_all(b"once more").await.unwrap();
        assert_eq!(read_all(&mut stream).await, MOST);
    }
}
