//! The responses of refused requests.

mod grpc;
mod problem;

use std::time::Duration;

use http::{Method, Response, StatusCode, header};
use spillgate_policy::{Answer, Ban, Error, Outcome, RequestView};

pub use self::grpc::GrpcStatus;
pub use self::problem::ProblemJson;
use crate::headers::whole_seconds;

/// Makes the response of a refused request: [`ProblemJson`], [`GrpcStatus`], or a closure.
///
/// The enforcer then adds `Retry-After`, unless it is there, and the [`Headers`](crate::Headers).
///
/// ```
/// use http::Response;
/// use spillgate_policy::{Gate, Limit, Policy};
/// use spillgate_enforce::{Enforcer, Refusal};
///
/// # let gate = Gate::new(Policy::builder().limit(Limit::new("api", "1/s")).build()?)?;
/// let enforcer = Enforcer::new(gate).respond_with(|refusal: &Refusal<'_>| {
///     let mut response = Response::new("Not so fast.");
///     *response.status_mut() = refusal.status();
///     response
/// });
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
pub trait Refuse<B> {
    /// Makes the response.
    fn refuse(&self, refusal: &Refusal<'_>) -> Response<B>;
}

impl<B, F: Fn(&Refusal<'_>) -> Response<B>> Refuse<B> for F {
    fn refuse(&self, refusal: &Refusal<'_>) -> Response<B> {
        self(refusal)
    }
}

/// When to try again, if nobody knows.
const A_SECOND: Duration = Duration::from_secs(1);

/// A request that is refused, and why.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'r> {
    reason: Reason,
    request: RequestView<'r>,
    outcome: Option<&'r Outcome<'r>>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A limit is exceeded.
    Denied,
    /// The caller is on the block list.
    Blocked,
    /// The caller is banned.
    Banned,
    /// The service is at its limit. It is not the caller's fault.
    Shed,
    /// The policy has limits for hosts, and the request does not say clearly which host it is
    /// for.
    HostRequired,
    /// The store could not decide.
    StoreFailed,
    /// The store was not asked, since it is overloaded.
    Overloaded,
}

impl Reason {
    /// Why a request is refused that was decided about; `None` if it is not.
    pub(crate) fn of(answer: Answer) -> Option<Self> {
        match answer {
            Answer::Allowed => None,
            Answer::Blocked => Some(Self::Blocked),
            Answer::Banned => Some(Self::Banned),
            Answer::Shed => Some(Self::Shed),
            Answer::HostRequired => Some(Self::HostRequired),
            // What later versions may answer beside these lets nobody pass.
            _ => Some(Self::Denied),
        }
    }

    /// Why nothing was decided about a request.
    pub(crate) fn of_error(error: &Error) -> Self {
        if error.is_overloaded() { Self::Overloaded } else { Self::StoreFailed }
    }

    /// The status for it: 429, 403, 400 or 503. For a ban 429, unless the ban itself
    /// [says](Refusal::status) otherwise.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Denied | Self::Banned => StatusCode::TOO_MANY_REQUESTS,
            Self::Blocked => StatusCode::FORBIDDEN,
            Self::HostRequired => StatusCode::BAD_REQUEST,
            Self::Shed | Self::StoreFailed | Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl<'r> Refusal<'r> {
    pub(crate) fn new(
        reason: Reason,
        request: RequestView<'r>,
        outcome: Option<&'r Outcome<'r>>,
    ) -> Self {
        Self { reason, request, outcome }
    }

    /// Why the request is refused.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The request.
    pub fn request(&self) -> &RequestView<'r> {
        &self.request
    }

    /// What was decided; `None` if the store failed.
    #[must_use]
    pub fn outcome(&self) -> Option<&'r Outcome<'r>> {
        self.outcome
    }

    /// The status for it: 429, 403, 400 or 503.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        let ban = self.outcome.and_then(Outcome::ban);
        match self.reason {
            Reason::Banned => ban.map_or(self.reason.status(), Ban::status),
            reason => reason.status(),
        }
    }

    /// The time until the same request would pass; `None` if no waiting helps. A second
    /// if the store failed. If the request is shed, when to try again: nobody knows whether it
    /// passes then.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.reason {
            Reason::Denied | Reason::Banned => self.outcome?.retry_after(),
            Reason::Blocked | Reason::HostRequired => None,
            Reason::Shed => self.outcome.and_then(Outcome::retry_after).or(Some(A_SECOND)),
            Reason::StoreFailed | Reason::Overloaded => Some(A_SECOND),
        }
    }

    /// The names of the limits that are exceeded.
    pub fn violated(&self) -> impl Iterator<Item = &'r str> {
        // Those in shadow are not asked about a request that is denied.
        let limits = self.outcome.into_iter().flat_map(Outcome::limits);
        limits.filter(|limit| limit.decision().is_denied()).map(|limit| limit.name())
    }

    /// True if the client speaks gRPC.
    #[must_use]
    pub fn is_grpc(&self) -> bool {
        // Of any other method, a cache may take the 200 for the resource.
        let content_type = self.request.headers().get(header::CONTENT_TYPE);
        self.request.method() == Method::POST
            && content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
    }

    /// The refusal for people: printable ASCII, without quotes, backslashes or `%`, so
    /// that JSON and gRPC need not escape it. Names of limits are letters, digits, `-`,
    /// `_` and `.`.
    fn detail(&self) -> String {
        let name = || self.outcome.and_then(Outcome::denied_by).unwrap_or_default();
        let seconds = self.retry_after().map(|time| whole_seconds(time).max(1));
        match (self.reason, seconds) {
            (Reason::Blocked, _) => "This caller is blocked.".to_owned(),
            (Reason::Banned, Some(seconds)) => {
                format!("This caller is banned. Try again in {seconds} s.")
            }
            (Reason::Banned, None) => "This caller is banned.".to_owned(),
            (Reason::Shed, seconds) => {
                let seconds = seconds.unwrap_or(1);
                format!("The service can take no more requests now. Try again in {seconds} s.")
            }
            (Reason::HostRequired, _) => {
                "The request does not say clearly which host it is for. Send one Host header."
                    .to_owned()
            }
            (Reason::StoreFailed, _) => {
                "The rate limit could not be checked. Try again.".to_owned()
            }
            (Reason::Overloaded, _) => {
                "Too many requests are waiting for their rate limit to be checked. Try again."
                    .to_owned()
            }
            (Reason::Denied, Some(seconds)) => {
                format!("The limit {} is exceeded. Try again in {seconds} s.", name())
            }
            (Reason::Denied, None) => {
                format!("The limit {} never lets this request pass. Waiting does not help.", name())
            }
        }
    }
}
