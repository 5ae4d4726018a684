use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that lets other tasks run once before it writes, so that what they have to say
/// goes out in the same write.
///
/// Otherwise the first of many calls that come together would be sent alone, and be received,
/// answered and read alone. Where calls do come alone, they seldom wait for others; nor where
/// they are many, or the server would wait for all of them, and then they for the server.
#[derive(Debug)]
pub(super) struct Gathering<S> {
    stream: S,
    /// While others have their turn: how many bytes there were before.
    waiting: Option<usize>,
    /// How many writes do not wait, since the last that did was joined by nobody, or by many.
    hurried: u8,
}

/// How many writes hurry after one that should have.
const HURRIED: u8 = 15;

/// How many bytes are enough for a write: some twenty calls.
const ENOUGH: usize = 4096;

impl<S> Gathering<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, waiting: None, hurried: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathering<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.waiting.take() {
            None if self.hurried > 0 => self.hurried -= 1,
            None => {
                self.waiting = Some(bytes.len());
                // A task that wakes itself is run after those that are ready already.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(before) => {
                if bytes.len() == before || bytes.len() > ENOUGH {
                    self.hurried = HURRIED;
                }
            }
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
