//! What is sent back.

use bytes::{BufMut, Bytes, BytesMut};
use h2::server::SendResponse;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response};
use prost::Message;
use tonic::{Code, Status};

use super::body::PREFIX;

static GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
static OK: HeaderValue = HeaderValue::from_static("0");

/// Sends the response or error of a call, if the client is still there, and returns its code.
pub(super) fn send(mut respond: SendResponse<Bytes>, answer: Result<Bytes, Status>) -> Code {
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, GRPC.clone());
    match answer {
        Ok(message) => {
            if let Ok(mut stream) = respond.send_response(response, false) {
                let _ = stream.send_data(message, false);
                let _ =
                    stream.send_trailers(HeaderMap::from_iter([(GRPC_STATUS.clone(), OK.clone())]));
            }
            Code::Ok
        }
        Err(status) => {
            // What is told consists of what a header can hold.
            let _ = status.add_header(response.headers_mut());
            let _ = respond.send_response(response, true);
            status.code()
        }
    }
}

pub(super) fn wrapped(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // There is room for all of it.
    let _ = message.encode(&mut bytes);
    bytes.freeze()
}
