//! Messages of a request.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use h2::RecvStream;
use hyper::body::{Body, Frame};
use tonic::{Code, Status};

use super::MESSAGE;

/// The prefix of a message: whether it is compressed, and its length.
pub(super) const PREFIX: usize = 5;

/// The only message of a request, as far as it has arrived.
#[derive(Debug)]
pub(super) struct Message {
    stream: RecvStream,
    /// The first piece. Mostly that is all of it, and not copied.
    first: Bytes,
    joined: BytesMut,
}

impl Message {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, first: Bytes::new(), joined: BytesMut::new() }
    }

    /// The message, once it has arrived whole.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        while let Some(piece) = ready!(self.stream.poll_data(context)) {
            let piece = piece.map_err(|error| Status::new(Code::Cancelled, error.to_string()))?;
            // Fails only if the stream has ended.
            let _ = self.stream.flow_control().release_capacity(piece.len());
            if self.first.len().max(self.joined.len()) + piece.len() > PREFIX + MESSAGE {
                return Poll::Ready(Err(Status::resource_exhausted(format!(
                    "message too large: at most {MESSAGE} bytes"
                ))));
            }
            self.take(piece);
        }
        let joined = std::mem::take(&mut self.joined).freeze();
        let first = std::mem::take(&mut self.first);
        Poll::Ready(unwrapped(if joined.is_empty() { first } else { joined }))
    }

    /// Takes one more piece, of which there may be as many as bytes.
    fn take(&mut self, piece: Bytes) {
        if self.first.is_empty() {
            self.first = piece;
            return;
        }
        if self.joined.is_empty() {
            self.joined.extend_from_slice(&self.first);
        }
        self.joined.extend_from_slice(&piece);
    }
}

fn unwrapped(mut read: Bytes) -> Result<Bytes, Status> {
    if read.len() < PREFIX {
        return Err(Status::invalid_argument("missing message"));
    }
    let is_compressed = read.get_u8() != 0;
    let length = read.get_u32() as usize;
    if is_compressed {
        return Err(Status::unimplemented(
            "compressed messages are not supported; send them uncompressed",
        ));
    }
    if length != read.len() {
        let message =
            format!("message length mismatch: {length} bytes announced, {} received", read.len());
        return Err(Status::invalid_argument(message));
    }
    Ok(read)
}

/// The messages of a request for services that take a stream of them.
pub(super) struct Messages(pub(super) RecvStream);

impl Body for Messages {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let piece = ready!(self.0.poll_data(context));
        if let Some(Ok(piece)) = &piece {
            let _ = self.0.flow_control().release_capacity(piece.len());
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}
