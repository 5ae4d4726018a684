use std::fmt::Display;

use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::json;

use crate::body::Body;

/// Why a request was not forwarded, or has no response: a problem document ([RFC 9457]).
///
/// [RFC 9457]: https://www.rfc-editor.org/rfc/rfc9457
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Display) -> Self {
        Self { status, detail: detail.to_string(), header: None }
    }

    pub(super) fn bad_request(detail: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn method_not_allowed(detail: impl Display, allowed: &'static str) -> Self {
        let header = Some((ALLOW, HeaderValue::from_static(allowed)));
        Self { header, ..Self::new(StatusCode::METHOD_NOT_ALLOWED, detail) }
    }

    pub(super) fn unavailable(detail: impl Display) -> Self {
        let header = Some((RETRY_AFTER, HeaderValue::from_static("1")));
        Self { header, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    pub(super) fn response(self) -> Response<Body> {
        let document = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response = Response::new(Body::from(document.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(self.header);
        response
    }
}
