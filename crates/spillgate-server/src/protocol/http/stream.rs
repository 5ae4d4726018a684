use std::future::ready;
use std::io::{self, IoSlice};
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use super::pulse::Pulse;

/// A stream whose pulse is felt, and which is closed with care.
#[derive(Debug)]
pub(crate) struct Stream<P, T> {
    io: T,
    pulse: P,
    /// What is to be read again.
    unread: Vec<u8>,
}

impl<P: Deref<Target = Pulse> + Unpin, T: AsyncRead + AsyncWrite + Unpin> Stream<P, T> {
    pub(crate) fn new(io: T, pulse: P) -> Self {
        Self { io, pulse, unread: Vec::new() }
    }

    /// Lets bytes be read again, which were the last that were read.
    pub(crate) fn unread(&mut self, bytes: &[u8]) {
        self.unread.splice(..0, bytes.iter().copied());
    }

    pub(crate) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Lets go by what the client is still sending. If a socket is closed with something
    /// unread, the client may lose the response.
    pub(crate) async fn close(mut self) {
        // What a client may have under way before it sees the response.
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
            // It has been told, and that is all that matters.
            let _ = timeout(TIME, rest).await;
        }
    }
}

impl<P: Deref<Target = Pulse> + Unpin, T: AsyncRead + Unpin> AsyncRead for Stream<P, T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let count = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..count]);
            self.unread.drain(..count);
            // It may follow a request that was answered: what is left of it is to come in time.
            self.pulse.has_read();
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.pulse.has_read();
        }
        read
    }
}

impl<P: Deref<Target = Pulse>, T> Stream<P, T> {
    fn note_sent(&self, written: &Poll<io::Result<usize>>) {
        self.pulse.has_sent(match written {
            Poll::Pending => None,
            Poll::Ready(written) => Some(*written.as_ref().unwrap_or(&0)),
        });
    }
}

impl<P: Deref<Target = Pulse> + Unpin, T: AsyncWrite + Unpin> AsyncWrite for Stream<P, T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.note_sent(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, parts);
        self.note_sent(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.pulse.has_flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
