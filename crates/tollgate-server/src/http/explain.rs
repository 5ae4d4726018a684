//! `POST /v1/explain`.

use http::header::ACCEPT;
use http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::parse;
use super::check::Original;
use super::problem::Problem;
use super::reply::{Reply, json, text};
use crate::App;

/// What is to be explained.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainBody<'a> {
    /// The request.
    #[serde(borrow)]
    request: Original<'a>,
}

pub(super) async fn run(app: &App, head: &Parts, body: &[u8]) -> Result<Reply, Problem> {
    let ExplainBody { request } = parse(body)?;
    let message = request.message()?;
    let explained = app.gate().explain(&message.request()).await;
    let explanation = explained.map_err(|error| Problem::of_store(&error))?;
    let accepts = head.headers.get(ACCEPT);
    match accepts.is_some_and(|accepts| accepts.as_bytes().starts_with(b"text/plain")) {
        true => Ok(text(explanation.to_string())),
        false => json(&explanation),
    }
}
