//! `/v1/policy`: the policy in force.

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use hyper::body::Incoming;

use super::HttpServer;
use super::body::{content_type, expect_type, read};
use super::problem::Problem;
use super::reply::{Reply, content, json};
use super::service::block_in_place;
use crate::App;

pub(super) const TOML: &str = "application/toml";

/// The longest text of a policy.
const LONGEST: usize = 16 * 1024 * 1024;

pub(super) fn show(app: &App) -> Result<Reply, Problem> {
    Ok(content(TOML, app.policy().as_bytes().to_vec()))
}

pub(super) async fn text(
    server: &HttpServer,
    head: &Parts,
    body: Incoming,
) -> Result<Bytes, Problem> {
    expect_type(content_type(&head.headers), TOML)?;
    let text = read(body, LONGEST, server.bounds.stalled).await?;
    if text.trim_ascii().is_empty() {
        return Err(Problem::bad_request(
            "the body is empty; send the text of a policy, which is \"limit = []\" for one without limits",
        ));
    }
    Ok(text)
}

pub(super) fn replace(app: &App, text: &[u8]) -> Result<Reply, Problem> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let place = error.valid_up_to();
        let detail = format!("the policy is not UTF-8 at byte {place}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    })?;
    let changes = block_in_place(|| app.replace(text)).map_err(|error| {
        app.readiness().refused();
        Problem::refused(&error)
    })?;
    app.readiness().reloaded();
    json(&changes)
}
