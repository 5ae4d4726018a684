//! From a call to its answer.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use tokio::time::timeout;
use tonic::Status;

use super::body::Message;
use super::request::DecodedRequest;
use super::{GrpcServer, access, reply, response};
use spillgate_net::{Activity, InProgress};

/// A call that something has to be waited for.
pub(super) type CallFuture<'s> = Pin<Box<dyn Future<Output = ()> + Send + 's>>;

/// A call that has arrived.
pub(super) struct Call<'s> {
    pub(super) server: &'s GrpcServer,
    pub(super) peer: Option<IpAddr>,
    pub(super) head: Parts,
    pub(super) body: RecvStream,
    pub(super) respond: SendResponse<Bytes>,
    /// The client waits for us, and not we for it.
    pub(super) in_progress: InProgress<&'s Activity>,
}

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

impl<'s> Call<'s> {
    pub(super) fn new(
        server: &'s GrpcServer,
        peer: Option<IpAddr>,
        activity: &'s Activity,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) -> Self {
        let (head, body) = request.into_parts();
        Self { server, peer, head, body, respond, in_progress: Activity::begin_request(activity) }
    }

    /// Answers at once if it can be, and gives back what has to be waited for.
    pub(super) fn begin(mut self) -> Option<CallFuture<'s>> {
        if let Some(status) = foreign(&self.head) {
            let mut response = Response::new(());
            *response.status_mut() = status;
            // If the client is gone, nobody misses it.
            let _ = self.respond.send_response(response, true);
            return None;
        }
        if self.head.uri.path() != SHOULD_RATE_LIMIT {
            return Some(Box::pin(self.serve_other()));
        }
        let Self { server, respond, in_progress, body, .. } = self;
        let finish = move |answer| {
            server.stats.count_call(reply::send(respond, answer));
            drop(in_progress);
        };
        if let Err(status) = access::admit(&server.app.access(), self.peer, &self.head) {
            finish(Err(status));
            return None;
        }
        let mut message = Message::new(body);
        // The message has mostly arrived with the call, and a store in memory decides at once.
        let read = message.poll(&mut Context::from_waker(Waker::noop()));
        let request = match read {
            Poll::Pending => {
                return Some(Box::pin(async move { finish(read_later(server, message).await) }));
            }
            Poll::Ready(read) => read.and_then(DecodedRequest::decode),
        };
        match request {
            Ok(request) => match response::at_once(server, &request) {
                Some(answer) => finish(answer),
                None => {
                    return Some(Box::pin(async move {
                        finish(response::later(server, &request).await)
                    }));
                }
            },
            Err(status) => finish(Err(status)),
        }
        None
    }
}

/// Answers a call whose message is still to arrive.
async fn read_later(server: &GrpcServer, mut message: Message) -> Result<Bytes, Status> {
    let read = timeout(server.bounds.stalled, poll_fn(|context| message.poll(context))).await;
    response::later(server, &DecodedRequest::decode(read.map_err(|_| late())??)?).await
}

/// What a client is told whose message is waited for no longer.
pub(super) fn late() -> Status {
    Status::deadline_exceeded("timed out waiting for the message")
}

/// The status for a request that is none of gRPC, such as one of a web page.
fn foreign(head: &Parts) -> Option<StatusCode> {
    if head.method != Method::POST {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    let kind = head.headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    let is_grpc = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    let is_grpc = is_grpc.is_some_and(|rest| matches!(rest, [] | [b'+' | b';', ..]));
    (!is_grpc).then_some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}
