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

use super::asked::Asked;
use super::body::Message;
use super::{answer, guard, reply};
use crate::App;
use spillgate_net::{Activity, InProgress};

/// A call that something has to be waited for.
pub(super) type Pending<'s> = Pin<Box<dyn Future<Output = ()> + Send + 's>>;

/// A call that has arrived.
pub(super) struct Call<'s> {
    pub(super) app: &'s App,
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
        app: &'s App,
        peer: Option<IpAddr>,
        activity: &'s Activity,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) -> Self {
        let (head, body) = request.into_parts();
        Self { app, peer, head, body, respond, in_progress: Activity::begin_request(activity) }
    }

    /// Answers at once if it can be, and gives back what has to be waited for.
    pub(super) fn begin(mut self) -> Option<Pending<'s>> {
        if let Some(status) = foreign(&self.head) {
            let mut response = Response::new(());
            *response.status_mut() = status;
            // If the client is gone, nobody misses it.
            let _ = self.respond.send_response(response, true);
            return None;
        }
        if self.head.uri.path() != SHOULD_RATE_LIMIT {
            return Some(Box::pin(self.aside()));
        }
        let Self { app, respond, in_progress, body, .. } = self;
        let finish = move |answer| {
            app.grpc.count_call(reply::send(respond, answer));
            drop(in_progress);
        };
        if let Err(status) = guard::admit(&app.access(), self.peer, &self.head) {
            finish(Err(status));
            return None;
        }
        let mut message = Message::new(body);
        // The message has mostly arrived with the call, and a store in memory decides at once.
        let read = message.poll(&mut Context::from_waker(Waker::noop()));
        let asked = match read {
            Poll::Pending => {
                return Some(Box::pin(async move { finish(read_later(app, message).await) }));
            }
            Poll::Ready(read) => read.and_then(Asked::decode),
        };
        match asked {
            Ok(asked) => match answer::at_once(app, &asked) {
                Some(answer) => finish(answer),
                None => {
                    return Some(Box::pin(async move { finish(answer::later(app, &asked).await) }));
                }
            },
            Err(status) => finish(Err(status)),
        }
        None
    }
}

/// Answers a call whose message is still to arrive.
async fn read_later(app: &App, mut message: Message) -> Result<Bytes, Status> {
    let read = timeout(app.bounds.stalled, poll_fn(|context| message.poll(context))).await;
    answer::later(app, &Asked::decode(read.map_err(|_| late())??)?).await
}

/// What a client is told whose message is waited for no longer.
pub(super) fn late() -> Status {
    Status::deadline_exceeded("the message did not arrive in time")
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
