//! `GET /`: what this is, and what to try.

use http::header::HOST;
use http::request::Parts;

use super::reply::{Reply, text};
use crate::App;

pub(super) async fn run(app: &App, head: &Parts) -> Reply {
    let version = env!("CARGO_PKG_VERSION");
    let routes = include_str!("home.txt");
    // Under which the client has come here, and the server answers to.
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if app.has_tls() { "https" } else { "http" };
    let bearer = match app.access().is_loopback() {
        true => "",
        false => " -H \"authorization: Bearer $TOLLGATE_TOKEN\"",
    };
    let question = question(app).await;
    text(format!(
        "Tollgate {version}: may this caller do this, now?\n\n{routes}\nTry:\n\n  \
         curl -d '{question}' -H 'content-type: application/json'{bearer} \\\n    \
         {scheme}://{host}/v1/check\n"
    ))
}

/// A check that the policy in force can answer.
async fn question(app: &App) -> String {
    let limits: Vec<_> = app.gate().policy().limits().map(str::to_owned).collect();
    for limit in limits {
        // Names of limits need no escapes.
        if app.gate().policy().parts(&limit) == Some(0) {
            return format!("{{\"limit\":\"{limit}\"}}");
        }
        // One of these is a caller, whatever the limit is counted per, if that is a single thing.
        for key in ["203.0.113.7", "user:42", "42", "api-key:k1"] {
            if app.gate().peek_limit(&limit, &[key], 0).await.is_ok() {
                return format!("{{\"limit\":\"{limit}\",\"key\":\"{key}\"}}");
            }
        }
    }
    r#"{"request":{"path":"/","ip":"203.0.113.7"}}"#.to_owned()
}
