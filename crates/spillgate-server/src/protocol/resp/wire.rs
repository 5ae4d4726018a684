use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::codec::Writer;

/// A stream with its buffers. An idle connection holds at most [`KEPT`] bytes for each.
#[derive(Debug)]
pub(super) struct Wire<T> {
    io: T,
    pub(super) input: Vec<u8>,
    pub(super) out: Writer,
    sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Something was read, or there is room again for what was held back.
    Ready,
    End,
    /// The client has to be waited for, and holds memory that others need.
    Evicted,
}

/// How much memory a connection keeps for its next batch.
const KEPT: usize = 4 * 1024;

const CHUNK: usize = 16 * 1024;

impl<T: AsyncRead + AsyncWrite + Unpin> Wire<T> {
    pub(super) fn new(io: T) -> Self {
        Self { io, input: Vec::new(), out: Writer::default(), sent: 0 }
    }

    pub(super) fn backlog(&self) -> usize {
        self.out.bytes().len()
    }

    pub(super) fn memory(&self) -> usize {
        self.input.capacity() + self.out.memory()
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends all replies, in one write if possible, and reads more, unless `most` bytes are to be
    /// sent. If requests are `held_back` for that, it only waits for room. Cancel-safe.
    pub(super) fn poll_turn(
        &mut self,
        context: &mut Context<'_>,
        most: usize,
        held_back: bool,
    ) -> Poll<io::Result<Turn>> {
        if let Poll::Ready(Err(error)) = self.poll_send(context) {
            return Poll::Ready(Err(error));
        }
        if self.backlog() >= most {
            return Poll::Pending;
        }
        if held_back {
            return Poll::Ready(Ok(Turn::Ready));
        }
        let count = ready!(self.poll_read(context))?;
        Poll::Ready(Ok(if count == 0 { Turn::End } else { Turn::Ready }))
    }

    /// Takes used input from the front.
    pub(super) fn take(&mut self, used: usize) {
        self.input.drain(..used);
        if self.input.is_empty() {
            self.input.shrink_to(KEPT);
        }
    }

    /// Sends what is left and says that no more comes.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_send(context)).await?;
        self.io.shutdown().await
    }

    /// Discards up to `most` bytes until the client closes: a socket that is closed with unread
    /// bytes is reset, and the client may lose replies.
    pub(super) async fn ignore(&mut self, most: usize) -> io::Result<()> {
        let mut ignored = 0;
        while ignored < most {
            self.input.clear();
            let count = poll_fn(|context| self.poll_read(context)).await?;
            if count == 0 {
                break;
            }
            ignored += count;
        }
        Ok(())
    }

    /// Sends as much as the stream takes; ready once that is all.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.backlog() == 0 {
            return Poll::Ready(Ok(()));
        }
        while self.backlog() > 0 {
            let io = Pin::new(&mut self.io);
            let count = ready!(io.poll_write(context, self.out.bytes()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.advance(count);
            self.sent += count as u64;
        }
        self.out.shrink_to(KEPT);
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// Reads into the stack, so that a silent connection needs no buffer.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut chunk = [MaybeUninit::uninit(); CHUNK];
        let mut chunk = ReadBuf::uninit(&mut chunk);
        ready!(Pin::new(&mut self.io).poll_read(context, &mut chunk))?;
        self.input.extend_from_slice(chunk.filled());
        Poll::Ready(Ok(chunk.filled().len()))
    }
}
