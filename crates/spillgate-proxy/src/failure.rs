use std::fmt;
use std::io;

use http::header::{CONNECTION, HeaderValue};
use http::{Response, StatusCode};
use spillgate_tower::ServiceLatency;

use super::body::Body;
use crate::problem::Problem;

/// Why a request has no response from an upstream.
#[derive(Debug)]
pub(super) enum Failure {
    NoneHealthy,
    /// Every healthy upstream has as many requests in flight as the settings allow.
    AllBusy,
    Connect(io::Error),
    ConnectTimeout,
    /// The upstream timed out, before or during its response.
    UpstreamStalled,
    /// The connection failed, or the response is invalid.
    Broken(hyper::Error),
    /// A response that two parsers could read differently.
    Ambiguous(&'static str),
    /// The client timed out while sending its request.
    ClientStalled,
    /// The client's body is invalid, or it disconnected.
    ClientBroke,
}

impl Failure {
    /// Every kind, for metrics.
    pub(super) const KINDS: [&str; 8] = [
        "unhealthy",
        "connect",
        "connect-timeout",
        "timeout",
        "broken",
        "ambiguous",
        "client",
        "busy",
    ];

    /// Its index among them.
    pub(super) const fn kind(&self) -> usize {
        match self {
            Self::NoneHealthy => 0,
            Self::Connect(_) => 1,
            Self::ConnectTimeout => 2,
            Self::UpstreamStalled => 3,
            Self::Broken(_) => 4,
            Self::Ambiguous(_) => 5,
            Self::ClientStalled | Self::ClientBroke => 6,
            Self::AllBusy => 7,
        }
    }

    const fn status(&self) -> StatusCode {
        match self {
            Self::NoneHealthy | Self::AllBusy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Connect(_) | Self::Broken(_) | Self::Ambiguous(_) => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout | Self::UpstreamStalled => StatusCode::GATEWAY_TIMEOUT,
            Self::ClientStalled => StatusCode::REQUEST_TIMEOUT,
            Self::ClientBroke => StatusCode::BAD_REQUEST,
        }
    }

    /// For the client. It does not reveal upstreams.
    const fn detail(&self) -> &'static str {
        match self {
            Self::NoneHealthy => "No upstream is healthy. Try again later.",
            Self::AllBusy => "Every upstream is busy. Try again later.",
            Self::Connect(_) => "The upstream cannot be reached.",
            Self::ConnectTimeout => "The upstream could not be reached in time.",
            Self::UpstreamStalled => "The upstream did not answer in time.",
            Self::Broken(_) => "The upstream closed the connection, or its response is invalid.",
            Self::Ambiguous(_) => "The upstream's response is ambiguous.",
            Self::ClientStalled => "The request did not arrive in time.",
            Self::ClientBroke => "The body of the request is invalid.",
        }
    }

    pub(super) const fn is_of_client(&self) -> bool {
        matches!(self, Self::ClientStalled | Self::ClientBroke)
    }

    /// True if it is the upstream that failed, and not the client, or the proxy that did not ask.
    const fn is_of_upstream(&self) -> bool {
        !self.is_of_client() && !matches!(self, Self::NoneHealthy | Self::AllBusy)
    }

    pub(super) fn response(&self) -> Response<Body> {
        let problem = match self {
            Self::NoneHealthy | Self::AllBusy => Problem::unavailable(self.detail()),
            _ => Problem::new(self.status(), self.detail()),
        };
        let mut response = problem.response();
        if !self.is_of_upstream() {
            response.extensions_mut().insert(ServiceLatency(None));
        }
        if self.is_of_client() {
            // What follows may be the rest of this request.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// With details, for the log.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "cannot connect: {error}"),
            Self::Broken(error) => match std::error::Error::source(error) {
                Some(source) => write!(f, "{error}: {source}"),
                None => error.fmt(f),
            },
            Self::Ambiguous(why) => write!(f, "ambiguous response: {why}"),
            _ => f.write_str(self.detail()),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_learn_from_failures_of_upstreams_alone() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        for (failure, is_sample) in [
            (Failure::NoneHealthy, false),
            (Failure::AllBusy, false),
            (Failure::ClientStalled, false),
            (Failure::ClientBroke, false),
            (Failure::Connect(refused()), true),
            (Failure::ConnectTimeout, true),
            (Failure::UpstreamStalled, true),
            (Failure::Ambiguous("two lengths"), true),
        ] {
            let response = failure.response();
            let mark = response.extensions().get();
            assert_eq!(mark, (!is_sample).then_some(&ServiceLatency(None)), "{failure}");
        }
    }
}
