use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::tls::TlsConnection;

/// A TCP, TLS or Unix stream.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsConnection>),
    Unix(UnixStream),
}

macro_rules! over {
    ($self:expr, $poll:ident($($argument:expr),+)) => {
        match $self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).$poll($($argument),+),
            Self::Tls(stream) => Pin::new(stream).$poll($($argument),+),
            Self::Unix(stream) => Pin::new(stream).$poll($($argument),+),
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        over!(self, poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        over!(self, poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        over!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        over!(self, poll_shutdown(cx))
    }
}
