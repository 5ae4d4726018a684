use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use spillgate_enforce::{Admission, RateLimitHeaders};
use spillgate_policy::store::{Memory, Store};
use spillgate_policy::{Error, Outcome};
use tower_service::Service;

use crate::future::{ResponseFuture, decide_and_call, offer, view, wait_and_call};
use crate::layer::Shared;
use crate::{ProblemJson, Refuse, ResponseBody};

/// Asks a [`Gate`](spillgate_policy::Gate) about each request, and hands those that pass to
/// the service behind it.
///
/// Errors are those of the inner service. Bodies are wrapped: a [`ResponseBody`] holds the permits of
/// concurrency limits until it has ended, or is dropped. So does the future of the response: an
/// error, a panic, or a client that goes away return them. A refused request never reaches the
/// service.
///
/// [Adaptive](spillgate_policy::Adaptive) limits learn from responses: how long each took until
/// its head was there, and that it failed if its status is 500 or above, or the service returned an
/// error. A client that goes away before says nothing.
pub struct Spillgate<I, S: Store = Memory, R = ProblemJson> {
    inner: I,
    shared: Arc<Shared<S, R>>,
}

impl<I, S: Store, R> Spillgate<I, S, R> {
    pub(crate) fn new(inner: I, shared: Arc<Shared<S, R>>) -> Self {
        Self { inner, shared }
    }
}

impl<I, S, R, ReqBody, ResBody> Service<Request<ReqBody>> for Spillgate<I, S, R>
where
    I: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    I::Future: Send,
    S: Store,
    R: Refuse<ResBody> + Send + Sync + 'static,
    ReqBody: Send + 'static,
    ResBody: Send + 'static,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = I::Error;
    type Future = ResponseFuture<I::Future, S, R, ResBody, I::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let shared = &self.shared;
        let enforcer = &shared.enforcer;
        let peer = shared.peer(&mut request);
        let view = view(&request, peer);
        let decided = enforcer.try_decide(&view, |decided| match decided {
            Ok(outcome) if outcome.is_plain() => Tried::Plain(enforcer.rate_limit_headers(outcome)),
            other => Tried::Other(Box::new(other.map(Outcome::take))),
        });
        let decided = match decided {
            Some(Tried::Plain(headers)) => {
                return ResponseFuture::plain(self.inner.call(request), headers);
            }
            Some(Tried::Other(decided)) => *decided,
            None => {
                let (shared, inner) = (Arc::clone(shared), self.inner.clone());
                return ResponseFuture::boxed(decide_and_call(shared, inner, request, peer));
            }
        };
        match enforcer.admit(view, decided) {
            Admission::Refuse(response) => ResponseFuture::refused(response),
            Admission::Pass(Some(outcome)) if !outcome.wait().is_zero() => {
                let delayed = enforcer.delay(Some(outcome));
                let (shared, inner) = (Arc::clone(shared), self.inner.clone());
                ResponseFuture::boxed(wait_and_call(shared, delayed, inner, request))
            }
            Admission::Pass(mut outcome) => {
                let permits = offer(outcome.as_mut(), &mut request);
                let response = self.inner.call(request);
                ResponseFuture::called(response, Arc::clone(shared), outcome, permits)
            }
        }
    }
}

/// What was decided without waiting.
enum Tried {
    /// The request goes ahead, and its response gets these headers.
    Plain(Option<RateLimitHeaders>),
    /// There is more to do. In a box, so that the other is small.
    Other(Box<Result<Outcome<'static>, Error>>),
}

impl<I: Clone, S: Store, R> Clone for Spillgate<I, S, R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<I: fmt::Debug, S: Store, R> fmt::Debug for Spillgate<I, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spillgate")
            .field("inner", &self.inner)
            .field("enforcer", &self.shared.enforcer)
            .finish_non_exhaustive()
    }
}
