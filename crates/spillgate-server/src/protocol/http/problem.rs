use std::error::Error as _;
use std::fmt::{self, Display};

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use spillgate_policy::Error;

use super::reply::Reply;
use crate::App;

/// The type of a problem document.
pub(super) const PROBLEM: &str = "application/problem+json";

/// Why a request was not carried out: a problem document ([RFC 9457]).
///
/// [RFC 9457]: https://www.rfc-editor.org/rfc/rfc9457
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: ProblemType,
    detail: String,
    problems: Vec<PolicyProblem>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

/// What kind of problem it is.
#[derive(Clone, Copy, Debug)]
enum ProblemType {
    /// The status tells.
    Status,
    /// More is asked than can be answered.
    Overloaded,
}

/// Why a request was not carried out.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct Document<'a> {
    /// What kind of problem it is; `about:blank` if the status tells.
    r#type: &'static str,
    /// The meaning of the type, or of the status.
    title: &'a str,
    /// The status.
    status: u16,
    /// What is wrong, and what would be right.
    detail: &'a str,
    /// Everything that is wrong in a policy.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    problems: &'a [PolicyProblem],
}

/// One thing that is wrong in a policy.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyProblem")]
struct PolicyProblem {
    /// Counted from one.
    line: Option<usize>,
    /// Counted from one, in characters.
    column: Option<usize>,
    /// What is wrong, and what would be right.
    message: String,
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Display) -> Self {
        let (detail, kind) = (detail.to_string(), ProblemType::Status);
        Self { status, kind, detail, problems: Vec::new(), header: None }
    }

    /// What was sent cannot be understood.
    pub(crate) fn bad_request(detail: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn not_found(detail: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn forbidden(detail: impl Display) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub(super) fn unauthorized(detail: impl Display) -> Self {
        let bearer = HeaderValue::from_static("Bearer realm=\"spillgate\"");
        let problem = Self::new(StatusCode::UNAUTHORIZED, detail);
        Self { header: Some(Box::new((WWW_AUTHENTICATE, bearer))), ..problem }
    }

    pub(crate) fn method_not_allowed(detail: impl Display, allowed: &str) -> Self {
        let allow = HeaderValue::try_from(allowed).ok().map(|allowed| Box::new((ALLOW, allowed)));
        Self { header: allow, ..Self::new(StatusCode::METHOD_NOT_ALLOWED, detail) }
    }

    /// The store failed; the log says why. It may be available again soon.
    pub(super) fn of_store(error: &Error) -> Self {
        let kind =
            if error.is_overloaded() { ProblemType::Overloaded } else { ProblemType::Status };
        Self { kind, ..Self::unavailable(error.for_clients()) }
    }

    pub(crate) fn unavailable(detail: impl Display) -> Self {
        let soon = Box::new((RETRY_AFTER, HeaderValue::from_static("1")));
        Self { header: Some(soon), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    pub(super) fn of_limit_in_detail(app: &App, limit: &str, error: &Error) -> Self {
        match error.is_store() {
            true => Self::unavailable(error),
            false => Self::of_limit(app, limit, error),
        }
    }

    pub(super) fn of_limit(app: &App, limit: &str, error: &Error) -> Self {
        match app.gate().policy().parts(limit) {
            _ if error.is_store() => Self::of_store(error),
            None => Self::not_found(error),
            Some(_) => Self::bad_request(error),
        }
    }

    /// Why a policy, a quota or an entry of a list was refused.
    pub(super) fn refused(error: &Error) -> Self {
        let problems = error.problems().iter().map(|problem| PolicyProblem {
            line: problem.place().map(|place| place.line),
            column: problem.place().map(|place| place.column),
            message: problem.message().to_owned(),
        });
        // The cause says why the store cannot keep a limit.
        let detail = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        Self { problems: problems.collect(), ..problem }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn document(&self) -> Document<'_> {
        let (r#type, title) = match self.kind {
            ProblemType::Status => {
                ("about:blank", self.status.canonical_reason().unwrap_or_default())
            }
            ProblemType::Overloaded => (
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
                "Request cannot be satisfied due to temporary server capacity constraints",
            ),
        };
        Document {
            r#type,
            title,
            status: self.status.as_u16(),
            detail: &self.detail,
            problems: &self.problems,
        }
    }

    pub(super) fn reply(self) -> Reply {
        self.response().map(Bytes::from)
    }

    pub(crate) fn response(self) -> Response<Vec<u8>> {
        let document = serde_json::to_vec(&self.document()).unwrap_or_default();
        let mut response = Response::new(document);
        *response.status_mut() = self.status;
        let content_type = HeaderValue::from_static(PROBLEM);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overload_is_a_problem_of_its_own() {
        let gone = Problem::of_store(&Error::store("gone")).response();
        let overloaded = Problem::of_store(&Error::overloaded("too much")).response();
        for (response, kind) in [(gone, "about:blank"), (overloaded, "#temporary-reduced-capacity")]
        {
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[RETRY_AFTER], "1");
            assert!(String::from_utf8_lossy(response.body()).contains(kind));
        }
    }
}
