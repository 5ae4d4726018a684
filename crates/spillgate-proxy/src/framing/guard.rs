use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use spillgate_net::Activity;

use super::{END, Framing};

/// A stream whose requests every parser delimits alike. A request that is ambiguous is replaced by one
/// that hyper refuses.
#[derive(Debug)]
pub struct Guard<T> {
    io: T,
    /// Records whether what was read ends within a request.
    activity: Arc<Activity>,
    framing: Framing,
    /// Read instead of the rest, after an ambiguous request.
    rest: Option<&'static [u8]>,
}

impl<T> Guard<T> {
    /// Guards what is read from a stream.
    pub fn new(io: T, activity: Arc<Activity>) -> Self {
        Self { io, activity, framing: Framing::default(), rest: None }
    }

    /// The stream.
    pub fn into_inner(self) -> T {
        self.io
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Guard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(rest) = &mut self.rest {
            let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *rest = later;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        if let Err(at) = self.framing.follow(&buffer.filled()[before..]) {
            buffer.filled_mut()[before + at] = 0;
            buffer.set_filled(before + at + 1);
            self.rest = Some(END);
        }
        if buffer.filled().len() > before {
            self.activity.record_partial(self.framing.is_in_head());
            if self.framing.is_unknown() {
                self.activity.record_read();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Guard<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
