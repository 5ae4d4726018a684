use std::fmt;
use std::future::{Ready, poll_fn};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use pin_project_lite::pin_project;
use spillgate_policy::Outcome;
use spillgate_policy::store::Store;
use tower_service::Service;

use crate::Refuse;
use crate::headers::Told;
use crate::settings::{Ruling, Settings, asked};

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
        Told {
            #[pin]
            response: F,
            told: Option<Told>,
        },
        Called {
            #[pin]
            response: F,
            settings: Arc<Settings<S, R>>,
            // In a box, since most responses have none and every future has the room.
            outcome: Option<Box<Outcome<'static>>>,
        },
        Refused { response: Ready<Response<B>> },
        Boxed { response: BoxFuture<B, E> },
    }
}

type BoxFuture<B, E> = Pin<Box<dyn Future<Output = Result<Response<B>, E>> + Send>>;

impl<F, S: Store, R, B, E> ResponseFuture<F, S, R, B, E> {
    /// For a response that only has to be told what was decided.
    pub(crate) fn told(response: F, told: Option<Told>) -> Self {
        Self { state: State::Told { response, told } }
    }

    /// For a response that may change what was decided.
    pub(crate) fn called(
        response: F,
        settings: Arc<Settings<S, R>>,
        outcome: Option<Outcome<'static>>,
    ) -> Self {
        Self { state: State::Called { response, settings, outcome: outcome.map(Box::new) } }
    }

    pub(crate) fn refused(response: Response<B>) -> Self {
        Self { state: State::Refused { response: std::future::ready(response) } }
    }

    /// For what needs to wait before the service is called.
    pub(crate) fn boxed(
        response: impl Future<Output = Result<Response<B>, E>> + Send + 'static,
    ) -> Self {
        Self { state: State::Boxed { response: Box::pin(response) } }
    }
}

impl<F, S: Store, R, B, E> Future for ResponseFuture<F, S, R, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Told { response, told } => {
                let mut polled = response.poll(cx);
                if let (Poll::Ready(Ok(response)), Some(told)) = (&mut polled, told) {
                    told.write(response.headers_mut());
                }
                polled
            }
            StateProjection::Called { response, settings, outcome } => {
                let mut polled = response.poll(cx);
                if let (Poll::Ready(Ok(response)), Some(outcome)) = (&mut polled, outcome) {
                    settings.settle_now(outcome, response.status(), response.headers());
                    settings.tell(outcome, response);
                }
                polled
            }
            StateProjection::Refused { response } => Pin::new(response).poll(cx).map(Ok),
            StateProjection::Boxed { response } => response.as_mut().poll(cx),
        }
    }
}

/// Asks a store that has to be waited for, then calls the service.
pub(crate) async fn check_and_call<I, S, R, ReqBody, ResBody>(
    settings: Arc<Settings<S, R>>,
    inner: I,
    request: Request<ReqBody>,
    peer: Option<IpAddr>,
) -> Result<Response<ResBody>, I::Error>
where
    I: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S: Store,
    R: Refuse<ResBody>,
{
    let asked = asked(&request, peer);
    let checked = settings.check(&asked).await;
    match settings.judge(asked, checked) {
        Ruling::Refuse(response) => Ok(response),
        Ruling::Pass(outcome) => wait_and_call(Place::new(settings, outcome), inner, request).await,
    }
}

/// Waits as long as a shaper says, then calls the service.
pub(crate) async fn wait_and_call<I, S, R, ReqBody, ResBody>(
    place: Place<S, R>,
    mut inner: I,
    request: Request<ReqBody>,
) -> Result<Response<ResBody>, I::Error>
where
    I: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S: Store,
{
    let settings = Arc::clone(&place.settings);
    let outcome = place.waited().await;
    // Made ready only now: who waits shall not take up the place of others in there.
    poll_fn(|cx| inner.poll_ready(cx)).await?;
    let mut response = inner.call(request).await?;
    if let Some(mut outcome) = outcome {
        settings.settle(&mut outcome, response.status(), response.headers()).await;
        settings.tell(&outcome, &mut response);
    }
    Ok(response)
}

/// A place in a shaper's queue, given back when it is dropped: the client went away.
pub(crate) struct Place<S: Store, R> {
    settings: Arc<Settings<S, R>>,
    outcome: Option<Outcome<'static>>,
}

impl<S: Store, R> Place<S, R> {
    pub(crate) fn new(settings: Arc<Settings<S, R>>, outcome: Option<Outcome<'static>>) -> Self {
        Self { settings, outcome }
    }

    /// Waits until it is time to go ahead. There is nothing to give back any more then.
    pub(crate) async fn waited(mut self) -> Option<Outcome<'static>> {
        let wait = self.outcome.as_ref().map(Outcome::wait).unwrap_or_default();
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        self.outcome.take()
    }
}

impl<S: Store, R> Drop for Place<S, R> {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome.take().filter(|outcome| !outcome.wait().is_zero()) {
            self.settings.gate.cancel(outcome);
        }
    }
}

impl<F, S: Store, R, B, E> fmt::Debug for ResponseFuture<F, S, R, B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
