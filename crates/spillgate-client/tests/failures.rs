//! Far sides that fail: they get nothing twice that may have been processed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use hyper_util::rt::TokioIo;
use spillgate_client::is_not_sent;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::common::Body;

/// A connection that takes a request, and then reports that there is no way to the host: as Linux does if
/// that is what it heard before the connection timed out.
struct Lost(bool);

impl AsyncRead for Lost {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0 {
            true => Poll::Ready(Err(io::ErrorKind::HostUnreachable.into())),
            false => Poll::Pending,
        }
    }
}

impl AsyncWrite for Lost {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0 = true;
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn an_unreachable_host_on_an_established_connection_is_no_proof_that_nothing_was_sent() {
    let connection = hyper::client::conn::http1::handshake(TokioIo::new(Lost(false)));
    let (mut sender, connection) = connection.await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("/").header("host", "api.example.com").body(Body::from("body"));
    let error = sender.send_request(request.unwrap()).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.kind(), io::ErrorKind::HostUnreachable);
    assert!(!is_not_sent(&error), "{error:?}");
    // Neither if something wraps it.
    assert!(!is_not_sent(&io::Error::other(error)));
}
