//! What a request holds until it ends.

use std::fmt;
use std::sync::Arc;

use spillgate_policy::{Outcome, RequestPermits};

/// The permits that a request holds of the concurrency limits that it met, be they
/// [fixed](spillgate_policy::Limit::concurrent) or [adaptive](spillgate_policy::Limit::adaptive).
///
/// They are released when the response body has ended. A request that goes on after that, such as a
/// WebSocket, can hold them for longer: the layer puts them into the extensions of each request that
/// has some. They are released when the last clone is dropped.
///
/// ```
/// use axum::body::Body;
/// use axum::extract::Request;
/// use http::{Response, StatusCode};
/// use spillgate_tower::HeldPermits;
///
/// // A handler that switches protocols. With axum's `WebSocketUpgrade`, take an
/// // `Option<Extension<HeldPermits>>` and move it into the closure of `on_upgrade`.
/// async fn chat(mut request: Request) -> Response<Body> {
///     let permits = request.extensions_mut().remove::<HeldPermits>();
///     tokio::spawn(async move {
///         let connection = hyper::upgrade::on(request).await;
///         // Talk, until the other side has gone.
///         drop((connection, permits));
///     });
///     let mut response = Response::new(Body::empty());
///     *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
///     response
/// }
/// ```
#[derive(Clone)]
#[must_use = "dropped, the permits are released"]
pub struct HeldPermits(
    #[expect(dead_code, reason = "it is there to be dropped")] Arc<RequestPermits>,
);

impl HeldPermits {
    /// Takes the permits of an outcome, if it has some.
    pub(crate) fn of(outcome: &mut Outcome<'_>) -> Option<Self> {
        let permits = outcome.take_permits();
        (!permits.is_empty()).then(|| Self(Arc::new(permits)))
    }
}

impl fmt::Debug for HeldPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldPermits").finish_non_exhaustive()
    }
}
