//! A request, its waits and its retries.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use spillgate::Timestamp;
use tokio::time::{sleep, timeout};
use tower_service::Service;

use crate::headers::parse_at;
use crate::layer::Shared;
use crate::pace::{Budget, Ticket};
use crate::retry::Attempt;
use crate::{BoxError, Error, ReplayBody};

/// The response of a [`Client`](crate::Client).
///
/// Dropped, a request that waits leaves the queue. One that is in flight is cancelled; it may have been
/// counted by the far side, so it stays spent.
pub struct ResponseFuture<B> {
    exchange: Pin<Box<dyn Future<Output = Result<Response<B>, Error>> + Send>>,
}

impl<B> ResponseFuture<B> {
    pub(crate) fn new(
        exchange: impl Future<Output = Result<Response<B>, Error>> + Send + 'static,
    ) -> Self {
        Self { exchange: Box::pin(exchange) }
    }
}

impl<B> Future for ResponseFuture<B> {
    type Output = Result<Response<B>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.exchange.as_mut().poll(cx)
    }
}

impl<B> fmt::Debug for ResponseFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// Sends a request when it may be sent, and again while that is safe and in time.
pub(crate) async fn exchange<I, R, Q, B>(
    mut inner: I,
    shared: Arc<Shared<R>>,
    request: Request<Q>,
) -> Result<Response<B>, Error>
where
    I: Service<Request<Q>, Response = Response<B>, Error: Into<BoxError>>,
    R: ReplayBody<Q>,
{
    let settings = Arc::clone(shared.pacer.settings());
    let deadline = shared.deadline.map_or(Timestamp::MAX, |time| settings.now() + time);
    let give_up = || deadline.min(settings.now() + settings.max_wait);
    let (parts, body) = request.into_parts();
    let (budget, route) = shared.pacer.find(&parts);
    let is_idempotent = shared.rules.is_idempotent(&parts);
    budget.count_request();
    let mut until = give_up();
    let mut ticket = budget.acquire(&route, until).await?;
    let mut request = Request::from_parts(parts, body);
    let mut retries = 0;
    loop {
        let spare = copy(&request, &shared, retries);
        let (result, may_help) =
            attempt(&mut inner, &shared, (ticket, until), request, is_idempotent).await;
        let Some(next) = spare.filter(|_| may_help) else { return result };
        let delay = shared.rules.delay(retries, settings.random());
        if settings.now() + delay > deadline || !budget.take_retry() {
            return result;
        }
        retries += 1;
        report(&budget, &next, retries);
        sleep(delay).await;
        // A request that cannot wait that long has the response that there is.
        until = give_up();
        let Ok(again) = budget.acquire(&route, until).await else { return result };
        (ticket, request) = (again, next);
    }
}

/// A copy of a request, if it may be needed and can be made.
fn copy<Q, R: ReplayBody<Q>>(
    request: &Request<Q>,
    shared: &Shared<R>,
    retries: u32,
) -> Option<Request<Q>> {
    if retries >= shared.rules.max_retries {
        return None;
    }
    let body = shared.replay.replay(request.body())?;
    let mut copy = Request::new(body);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// Sends a request once, if the service is ready in time, learns from its response, and says whether
/// another attempt is safe and may help.
async fn attempt<I, R, Q, B>(
    inner: &mut I,
    shared: &Shared<R>,
    (mut ticket, until): (Ticket, Timestamp),
    request: Request<Q>,
    is_idempotent: bool,
) -> (Result<Response<B>, Error>, bool)
where
    I: Service<Request<Q>, Response = Response<B>, Error: Into<BoxError>>,
{
    let rules = &shared.rules;
    let patience = until.since(shared.pacer.settings().now());
    let ready = poll_fn(|cx| inner.poll_ready(cx).map_err(Into::into));
    let Ok(ready) = timeout(patience, ready).await else { return (Err(ticket.expire()), false) };
    let sent = match ready {
        Ok(()) => {
            ticket.send();
            inner.call(request).await.map_err(Into::into)
        }
        Err(error) => Err(error),
    };
    match sent {
        Ok(response) => {
            let info = parse_at(response.headers(), shared.pacer.settings().now());
            let status = response.status();
            ticket.answer(status, &info);
            let attempt = Attempt::Answered { status, info: &info };
            (Ok(response), rules.should_repeat(is_idempotent, &attempt))
        }
        Err(error) => {
            let repeat = rules.should_repeat(is_idempotent, &Attempt::Failed(&*error));
            if (rules.is_not_sent)(&*error) {
                ticket.never_sent();
            }
            (Err(Error::service(error)), repeat)
        }
    }
}

fn report<Q>(budget: &Budget, request: &Request<Q>, retry: u32) {
    tracing::debug!(
        target: "spillgate", host = %budget.host(), method = %request.method(), retry,
        "sending a request again",
    );
}
