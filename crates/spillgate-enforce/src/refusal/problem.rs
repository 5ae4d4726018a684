use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use super::{Reason, Refusal, Refuse, grpc};

/// Refuses with a problem document ([RFC 9457]), and clients that speak gRPC as
/// [`GrpcStatus`](crate::GrpcStatus) does: the default.
///
/// ```text
/// HTTP/1.1 429 Too Many Requests
/// content-type: application/problem+json
/// retry-after: 3
///
/// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
///  "title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
///  "detail":"The limit public is exceeded. Try again in 3 s.",
///  "violated-policies":["public"]}
/// ```
///
/// For every body that can be made of bytes, such as axum's.
///
/// [RFC 9457]: https://www.rfc-editor.org/rfc/rfc9457
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemJson;

impl<B: From<Bytes>> Refuse<B> for ProblemJson {
    fn refuse(&self, refusal: &Refusal<'_>) -> Response<B> {
        if refusal.is_grpc() {
            return grpc::response(refusal, B::from(Bytes::new()));
        }
        let mut response = Response::new(B::from(Bytes::from(document(refusal))));
        *response.status_mut() = refusal.status();
        let content_type = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}

/// The document. Nothing in it has to be escaped: see [`Refusal::detail`].
fn document(refusal: &Refusal<'_>) -> String {
    let status = refusal.status();
    let (kind, title) = kind(refusal.reason(), status);
    let (code, detail) = (status.as_u16(), refusal.detail());
    let mut document =
        format!(r#"{{"type":"{kind}","title":"{title}","status":{code},"detail":"{detail}""#);
    let names: Vec<_> = refusal.violated().collect();
    if !names.is_empty() {
        document.push_str(r#","violated-policies":[""#);
        document.push_str(&names.join(r#"",""#));
        document.push_str(r#""]"#);
    }
    document.push('}');
    document
}

/// The type and the title. Where there is no type, the title is that of the status.
fn kind(reason: Reason, status: StatusCode) -> (&'static str, &'static str) {
    match reason {
        Reason::Denied => (
            "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "Request cannot be satisfied as assigned quota has been exceeded",
        ),
        Reason::Overloaded | Reason::Shed => (
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "Request cannot be satisfied due to temporary server capacity constraints",
        ),
        _ => ("about:blank", status.canonical_reason().unwrap_or_default()),
    }
}
