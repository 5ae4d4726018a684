//! From a call to its answer.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use tokio::time::timeout;
use tonic::Status;

use super::body::Message;
use super::request::DecodedRequest;
use super::{GrpcServer, reply, response};
use crate::Access;
use spillgate_net::{Activity, InProgress};

/// A call that something has to be waited for.
pub(super) type CallFuture<'s> = Pin<Box<dyn Future<Output = ()> + Send + 's>>;

pub(super) struct Call<'s> {
    pub(super) server: &'s GrpcServer,
    pub(super) peer: Option<IpAddr>,
    pub(super) head: Parts,
    pub(super) body: RecvStream,
    pub(super) respond: SendResponse<Bytes>,
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
        if let Err(status) = admit(&server.app.access(), self.peer, &self.head) {
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
                        finish(response::later(server, &request).await);
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

/// Refuses a client that is neither on this machine nor in `grpc-allow`, and has no token.
pub(super) fn admit(access: &Access, peer: Option<IpAddr>, head: &Parts) -> Result<(), Status> {
    if peer.is_some_and(|peer| access.takes_grpc_from(peer)) {
        return Ok(());
    }
    let mut given = head.headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (given.next(), given.next());
    let token = first.filter(|_| second.is_none()).and_then(|given| given.to_str().ok());
    let token = token.and_then(|given| given.split_once(' '));
    match token.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer")) {
        Some((_, token)) if access.knows(token.trim().as_bytes()) => Ok(()),
        Some(_) => Err(Status::unauthenticated("invalid token")),
        None => Err(Status::unauthenticated(
            "missing token: send authorization: Bearer TOKEN, or add this address to grpc-allow",
        )),
    }
}

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
