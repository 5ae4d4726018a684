use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use spillgate_policy::store::{Memory, Store};
use tower_service::Service;

use crate::future::{Place, ResponseFuture, check_and_call, wait_and_call};
use crate::settings::{Checked, Ruling, Settings, asked};
use crate::{ProblemJson, Refuse};

/// Asks a [`Gate`](spillgate_policy::Gate) about each request, and hands those that pass to
/// the service behind it.
///
/// Errors are those of the inner service, and so is the type of bodies. A refused request
/// never reaches it.
pub struct Spillgate<I, S: Store = Memory, R = ProblemJson> {
    inner: I,
    settings: Arc<Settings<S, R>>,
}

impl<I, S: Store, R> Spillgate<I, S, R> {
    pub(crate) fn new(inner: I, settings: Arc<Settings<S, R>>) -> Self {
        Self { inner, settings }
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
    type Response = Response<ResBody>;
    type Error = I::Error;
    type Future = ResponseFuture<I::Future, S, R, ResBody, I::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let settings = &self.settings;
        let peer = settings.peer(&mut request);
        let asked = asked(&request, peer);
        let checked = match settings.check_now(&asked) {
            Some(Checked::Plain(told)) => {
                return ResponseFuture::told(self.inner.call(request), told);
            }
            Some(Checked::Other(checked)) => *checked,
            None => {
                let (settings, inner) = (Arc::clone(settings), self.inner.clone());
                return ResponseFuture::boxed(check_and_call(settings, inner, request, peer));
            }
        };
        match settings.judge(asked, checked) {
            Ruling::Refuse(response) => ResponseFuture::refused(response),
            Ruling::Pass(Some(outcome)) if !outcome.wait().is_zero() => {
                let place = Place::new(Arc::clone(settings), Some(outcome));
                ResponseFuture::boxed(wait_and_call(place, self.inner.clone(), request))
            }
            Ruling::Pass(outcome) => {
                let settings = Arc::clone(settings);
                ResponseFuture::called(self.inner.call(request), settings, outcome)
            }
        }
    }
}

impl<I: Clone, S: Store, R> Clone for Spillgate<I, S, R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), settings: Arc::clone(&self.settings) }
    }
}

impl<I: fmt::Debug, S: Store, R> fmt::Debug for Spillgate<I, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spillgate")
            .field("inner", &self.inner)
            .field("settings", &self.settings)
            .finish()
    }
}
