//! The response of a service that may send for long.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

/// Sends a response as fast as the client reads it. A client that makes no room for a message
/// times out after `patience`.
pub(super) async fn pipe<B>(
    response: Response<B>,
    mut respond: SendResponse<Bytes>,
    patience: Duration,
) where
    B: Body<Data = Bytes> + Unpin,
{
    let (head, mut body) = response.into_parts();
    let is_whole = body.is_end_stream();
    let head = Response::from_parts(head, ());
    // If the client is gone, nobody misses what is not sent.
    let Ok(mut stream) = respond.send_response(head, is_whole) else { return };
    if is_whole {
        return;
    }
    loop {
        let frame = tokio::select! {
            _ = poll_fn(|context| stream.poll_reset(context)) => return,
            frame = body.frame() => frame,
        };
        let sent = match frame {
            None => stream.send_data(Bytes::new(), true).err(),
            Some(Err(_)) => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                return;
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => match timeout(patience, send_all(&mut stream, data)).await {
                    Ok(Some(())) => continue,
                    Ok(None) => return,
                    Err(_) => {
                        stream.send_reset(Reason::CANCEL);
                        return;
                    }
                },
                Err(frame) => match frame.into_trailers() {
                    Ok(trailers) => stream.send_trailers(trailers).err(),
                    Err(_) => continue,
                },
            },
        };
        drop(sent);
        return;
    }
}

/// Sends bytes as the client makes room for them; `None` if it does so no more.
async fn send_all(stream: &mut SendStream<Bytes>, mut data: Bytes) -> Option<()> {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = poll_fn(|context| stream.poll_capacity(context)).await?.ok()?;
        if room > 0 {
            stream.send_data(data.split_to(room.min(data.len())), false).ok()?;
        }
    }
    Some(())
}
