use std::fmt;
use std::future::{Ready, poll_fn};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use pin_project_lite::pin_project;
use spillgate_enforce::{Admission, Delayed, RateLimitHeaders};
use spillgate_policy::store::Store;
use spillgate_policy::{Outcome, RequestView};
use tower_service::Service;

use crate::layer::Shared;
use crate::{HeldPermits, Refuse, ResponseBody, ServiceLatency};

pin_project! {
    /// The response of a [`Spillgate`](crate::Spillgate).
    pub struct ResponseFuture<F, S: Store, R, B, E> {
        #[pin]
        state: State<F, S, R, B, E>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, S: Store, R, B, E> {
        Plain {
            #[pin]
            response: F,
            headers: Option<RateLimitHeaders>,
        },
        Called {
            #[pin]
            response: F,
            shared: Arc<Shared<S, R>>,
            // In a box, since most responses have none and every future has the room.
            outcome: Option<Box<Outcome<'static>>>,
            permits: Option<HeldPermits>,
        },
        Refused { response: Ready<Response<B>> },
        Boxed { response: BoxFuture<B, E> },
    }
}

type BoxFuture<B, E> = Pin<Box<dyn Future<Output = Held<B, E>> + Send>>;

/// A response that holds the permits of its request.
type Held<B, E> = Result<Response<ResponseBody<B>>, E>;

impl<F, S: Store, R, B, E> ResponseFuture<F, S, R, B, E> {
    /// For a response that only gets headers.
    pub(crate) fn plain(response: F, headers: Option<RateLimitHeaders>) -> Self {
        Self { state: State::Plain { response, headers } }
    }

    /// For a response that may change what was decided.
    pub(crate) fn called(
        response: F,
        shared: Arc<Shared<S, R>>,
        outcome: Option<Outcome<'static>>,
        permits: Option<HeldPermits>,
    ) -> Self {
        let outcome = outcome.map(Box::new);
        Self { state: State::Called { response, shared, outcome, permits } }
    }

    pub(crate) fn refused(response: Response<B>) -> Self {
        Self { state: State::Refused { response: std::future::ready(response) } }
    }

    /// For what needs to wait before the service is called.
    pub(crate) fn boxed(response: impl Future<Output = Held<B, E>> + Send + 'static) -> Self {
        Self { state: State::Boxed { response: Box::pin(response) } }
    }
}

impl<F, S: Store, R, B, E> Future for ResponseFuture<F, S, R, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Held<B, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Plain { response, headers } => {
                let mut polled = hold(response.poll(cx), None);
                if let (Poll::Ready(Ok(response)), Some(headers)) = (&mut polled, headers) {
                    headers.write(response.headers_mut());
                }
                polled
            }
            StateProjection::Called { response, shared, outcome, permits } => {
                let mut polled = response.poll(cx);
                if let (Poll::Ready(ready), Some(outcome)) = (&mut polled, outcome) {
                    shared.finish(outcome, ready);
                }
                let permits = if polled.is_ready() { permits.take() } else { None };
                hold(polled, permits)
            }
            StateProjection::Refused { response } => {
                hold(Pin::new(response).poll(cx).map(Ok), None)
            }
            StateProjection::Boxed { response } => response.as_mut().poll(cx),
        }
    }
}

impl<S: Store, R> Shared<S, R> {
    /// Notes how a request ended, and adds its headers to the response.
    fn finish<B, E>(&self, outcome: &mut Outcome<'_>, response: &mut Result<Response<B>, E>) {
        let Ok(response) = response else { return self.enforcer.fail(outcome) };
        ServiceLatency::note(outcome, response);
        self.enforcer.try_settle(outcome, response.status(), response.headers());
        self.write_headers(outcome, response);
    }

    fn write_headers<B>(&self, outcome: &Outcome<'_>, response: &mut Response<B>) {
        if let Some(headers) = self.enforcer.rate_limit_headers(outcome) {
            headers.write(response.headers_mut());
        }
    }
}

/// Lets a response hold permits until its body has ended.
#[inline]
fn hold<B, E>(
    polled: Poll<Result<Response<B>, E>>,
    permits: Option<HeldPermits>,
) -> Poll<Held<B, E>> {
    polled.map_ok(|response| response.map(|body| ResponseBody::new(body, permits)))
}

/// Waits for the store's decision, then calls the service.
pub(crate) async fn decide_and_call<I, S, R, ReqBody, ResBody>(
    shared: Arc<Shared<S, R>>,
    inner: I,
    request: Request<ReqBody>,
    peer: Option<IpAddr>,
) -> Held<ResBody, I::Error>
where
    I: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S: Store,
    R: Refuse<ResBody>,
{
    let view = view(&request, peer);
    let decided = shared.enforcer.decide(&view).await;
    match shared.enforcer.admit(view, decided) {
        Admission::Refuse(response) => Ok(response.map(ResponseBody::from)),
        Admission::Pass(outcome) => {
            let delayed = shared.enforcer.delay(outcome);
            wait_and_call(shared, delayed, inner, request).await
        }
    }
}

/// Waits as long as a shaper says, then calls the service.
pub(crate) async fn wait_and_call<I, S, R, ReqBody, ResBody>(
    shared: Arc<Shared<S, R>>,
    delayed: Delayed<S>,
    mut inner: I,
    mut request: Request<ReqBody>,
) -> Held<ResBody, I::Error>
where
    I: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S: Store,
{
    let mut outcome = delayed.wait().await;
    let permits = offer(outcome.as_mut(), &mut request);
    let mut response = call(&mut inner, request)
        .await
        .inspect_err(|_| outcome.iter_mut().for_each(|outcome| shared.enforcer.fail(outcome)))?;
    if let Some(mut outcome) = outcome {
        ServiceLatency::note(&mut outcome, &response);
        shared.enforcer.settle(&mut outcome, response.status(), response.headers()).await;
        shared.write_headers(&outcome, &mut response);
    }
    Ok(response.map(|body| ResponseBody::new(body, permits)))
}

async fn call<I, ReqBody, ResBody>(
    inner: &mut I,
    request: Request<ReqBody>,
) -> Result<Response<ResBody>, I::Error>
where
    I: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    // Made ready only now: a request that waits must not hold a slot of the service.
    poll_fn(|cx| inner.poll_ready(cx)).await?;
    inner.call(request).await
}

/// Takes the permits of an outcome, and offers them to whoever serves the request.
pub(crate) fn offer<B>(
    outcome: Option<&mut Outcome<'_>>,
    request: &mut Request<B>,
) -> Option<HeldPermits> {
    let permits = HeldPermits::of(outcome?)?;
    request.extensions_mut().insert(permits.clone());
    Some(permits)
}

/// What a gate reads of a request.
pub(crate) fn view<B>(request: &Request<B>, peer: Option<IpAddr>) -> RequestView<'_> {
    RequestView::new(request.method(), sent_uri(request), request.headers(), peer)
        .with_caller(request.extensions().get())
}

/// The URI that the client sent. A nested router of axum sees only the end of its path,
/// but a policy means the same everywhere.
fn sent_uri<B>(request: &Request<B>) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = request.extensions().get() {
        return uri;
    }
    request.uri()
}

impl<F, S: Store, R, B, E> fmt::Debug for ResponseFuture<F, S, R, B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
