use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use spillgate_net::{Activity, Stream};
use spillgate_proxy::framing::{END, Framing};

/// Reads one request, and no byte of the next, which may take the fast path.
#[derive(Debug)]
pub(super) struct RequestReader<'s, 'p, T> {
    stream: &'s mut Stream<&'p Activity, T>,
    framing: Framing,
    is_whole: bool,
    /// More was to be read than this request: the connection is kept.
    is_kept: bool,
    /// What is read instead of the rest, once something was wrong.
    rest: Option<&'static [u8]>,
}

impl<'s, 'p, T> RequestReader<'s, 'p, T> {
    pub(super) fn new(stream: &'s mut Stream<&'p Activity, T>) -> Self {
        let framing = Framing::default();
        Self { stream, framing, is_whole: false, is_kept: false, rest: None }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept && !self.framing.is_unknown()
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for RequestReader<'_, '_, T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_whole {
            self.is_kept = true;
            return Poll::Ready(Ok(()));
        }
        if let Some(rest) = &mut self.rest {
            let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *rest = later;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut *self.stream).poll_read(context, buffer))?;
        match self.framing.next_request(&buffer.filled()[before..]) {
            Ok(None) => self.is_whole = self.framing.is_unknown(),
            Ok(Some(count)) => {
                self.is_whole = true;
                self.stream.unread(&buffer.filled()[before + count..]);
                buffer.set_filled(before + count);
            }
            // A byte that cannot be in a head, so that it is refused.
            Err(at) => {
                buffer.filled_mut()[before + at] = 0;
                buffer.set_filled(before + at + 1);
                self.rest = Some(END);
            }
        }
        if buffer.filled().len() > before {
            self.stream.activity().record_partial(!self.is_whole);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for RequestReader<'_, '_, T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_kept() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut *self.stream).poll_shutdown(context)
    }
}
