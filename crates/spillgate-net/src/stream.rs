use std::future::ready;
use std::io::{self, IoSlice};
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use crate::Activity;

/// A stream that records its [`Activity`], and is closed gracefully.
#[derive(Debug)]
pub struct Stream<A, T> {
    io: T,
    activity: A,
    unread: Vec<u8>,
}

impl<A: Deref<Target = Activity> + Unpin, T: AsyncRead + AsyncWrite + Unpin> Stream<A, T> {
    /// Records what happens on a stream.
    pub fn new(io: T, activity: A) -> Self {
        Self { io, activity, unread: Vec::new() }
    }

    /// Puts back the bytes that were read last.
    pub fn unread(&mut self, bytes: &[u8]) {
        self.unread.splice(..0, bytes.iter().copied());
    }

    /// The activity of the connection.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Closes the stream after discarding unread bytes: with them, the socket would be reset, and
    /// the client may lose the response.
    pub async fn close(mut self) {
        // What a client may have sent before it sees the response.
        const BYTES: u64 = 4 * 1024 * 1024;
        const TIME: Duration = Duration::from_secs(1);
        let mut first = [0; 1];
        let is_sending = tokio::select! {
            biased;
            read = self.io.read(&mut first) => matches!(read, Ok(1)),
            () = ready(()) => false,
        };
        if is_sending {
            let rest = async {
                self.io.shutdown().await?;
                tokio::io::copy(&mut self.io.take(BYTES), &mut tokio::io::sink()).await
            };
            // The response was sent; the rest is best effort.
            let _ = timeout(TIME, rest).await;
        }
    }
}

impl<A: Deref<Target = Activity> + Unpin, T: AsyncRead + Unpin> AsyncRead for Stream<A, T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let count = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..count]);
            self.unread.drain(..count);
            // It may begin a request, whose rest has to arrive in time.
            self.activity.record_read();
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.record_read();
        }
        read
    }
}

impl<A: Deref<Target = Activity>, T> Stream<A, T> {
    fn record_sent(&self, written: &Poll<io::Result<usize>>) {
        self.activity.record_sent(match written {
            Poll::Pending => None,
            Poll::Ready(written) => Some(*written.as_ref().unwrap_or(&0)),
        });
    }
}

impl<A: Deref<Target = Activity> + Unpin, T: AsyncWrite + Unpin> AsyncWrite for Stream<A, T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.record_sent(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, parts);
        self.record_sent(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.activity.record_flush();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
