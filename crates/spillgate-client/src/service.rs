use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::exchange::{ResponseFuture, exchange};
use crate::layer::Shared;
use crate::{BoxError, CloneBody, Error, ReplayBody};

/// Sends requests through a service when a [`ClientLayer`](crate::ClientLayer) allows it.
///
/// It is always ready: a request waits in its future, which can be dropped at any time.
pub struct Client<I, R = CloneBody> {
    inner: I,
    shared: Arc<Shared<R>>,
}

impl<I, R> Client<I, R> {
    pub(crate) fn new(inner: I, shared: Arc<Shared<R>>) -> Self {
        Self { inner, shared }
    }
}

impl<I, R, ReqBody, ResBody> Service<Request<ReqBody>> for Client<I, R>
where
    I: Service<Request<ReqBody>, Response = Response<ResBody>, Error: Into<BoxError>>
        + Clone
        + Send
        + 'static,
    I::Future: Send,
    R: ReplayBody<ReqBody> + Send + Sync + 'static,
    ReqBody: Send + 'static,
    ResBody: Send + 'static,
{
    type Response = Response<ResBody>;
    type Error = Error;
    type Future = ResponseFuture<ResBody>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // The service behind must not hold something ready for a request that may wait for long.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        ResponseFuture::new(exchange(inner, shared, request))
    }
}

impl<I: Clone, R> Clone for Client<I, R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<I: fmt::Debug, R> fmt::Debug for Client<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("inner", &self.inner).finish_non_exhaustive()
    }
}
