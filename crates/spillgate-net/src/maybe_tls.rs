use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

/// A TCP stream, with or without TLS, of either side.
#[derive(Debug)]
pub enum MaybeTls {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl MaybeTls {
    /// A stream with TLS.
    pub fn tls(stream: impl Into<TlsStream<TcpStream>>) -> Self {
        Self::Tls(Box::new(stream.into()))
    }

    /// True if the stream is encrypted.
    pub fn has_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

/// Calls either stream.
macro_rules! call {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self {
            MaybeTls::Plain($stream) => $call,
            MaybeTls::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for MaybeTls {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        call!(self.get_mut(), stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for MaybeTls {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        call!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        call!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        call!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        call!(self.get_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        call!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}
