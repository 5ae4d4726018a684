use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::codec::Writer;

/// A stream, what was read from it and is not used yet, and what is to be sent.
///
/// A connection that waits holds no more memory than [`KEPT`] for each direction.
#[derive(Debug)]
pub(super) struct Wire<T> {
    io: T,
    pub(super) input: Vec<u8>,
    pub(super) out: Writer,
    /// How many bytes have been sent in all.
    sent: u64,
}

/// What has happened on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Something was read, or there is room again for what was held back.
    Ready,
    /// The client sends no more.
    End,
    /// The client has to be waited for, and holds memory that others need.
    Evicted,
}

/// How much memory a connection keeps for its next batch.
const KEPT: usize = 4 * 1024;

/// How much is read at once.
const CHUNK: usize = 16 * 1024;

impl<T: AsyncRead + AsyncWrite + Unpin> Wire<T> {
    pub(super) fn new(io: T) -> Self {
        Self { io, input: Vec::new(), out: Writer::default(), sent: 0 }
    }

    /// Bytes of replies that are not sent yet.
    pub(super) fn backlog(&self) -> usize {
        self.out.bytes().len()
    }

    /// How much memory it takes in both directions.
    pub(super) fn memory(&self) -> usize {
        self.input.capacity() + self.out.memory()
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends all replies, in one write if the stream takes them, and waits for more to
    /// read. As long as there is `most` to send nothing is read; if requests are
    /// `held_back` for that reason, it waits for room alone.
    ///
    /// Nothing is lost if it is not called again.
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

    /// Lets up to `most` bytes go by, until the client closes. If a socket is closed with
    /// something unread, the client may lose the replies that it has not read yet.
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

    /// Reads into the stack and keeps what came, so that nothing is set aside for a
    /// connection that is silent.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut chunk = [MaybeUninit::uninit(); CHUNK];
        let mut chunk = ReadBuf::uninit(&mut chunk);
        ready!(Pin::new(&mut self.io).poll_read(context, &mut chunk))?;
        self.input.extend_from_slice(chunk.filled());
        Poll::Ready(Ok(chunk.filled().len()))
    }
}
