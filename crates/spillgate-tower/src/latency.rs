use std::time::Duration;

use http::Response;
use spillgate_policy::Outcome;

/// How long a service took, for the [adaptive](spillgate_policy::Adaptive) limits in front of it; `None`
/// if the service was not asked, or nobody knows. Then they learn nothing from the response.
///
/// Without it, latency is the time from the decision to the response. What stands between the layer
/// and the service puts it into the extensions of a response for which that is wrong.
///
/// ```
/// use http::{Response, StatusCode};
/// use spillgate_tower::ServiceLatency;
///
/// /// The answer of a proxy that knows no server to ask.
/// fn no_server() -> Response<()> {
///     let mut response = Response::new(());
///     *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
///     response.extensions_mut().insert(ServiceLatency(None));
///     response
/// }
/// # assert_eq!(no_server().extensions().get(), Some(&ServiceLatency(None)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceLatency(pub Option<Duration>);

impl ServiceLatency {
    /// Passes on what a response says of itself.
    pub(crate) fn note<B>(outcome: &mut Outcome<'_>, response: &Response<B>) {
        if let Some(Self(latency)) = response.extensions().get() {
            outcome.set_latency(*latency);
        }
    }
}
