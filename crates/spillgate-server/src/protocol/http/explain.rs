//! `POST /v1/explain`.

use http::header::ACCEPT;
use http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;
use spillgate_policy::store::Store;
use spillgate_policy::{Explanation, Gate};

use super::check::Original;
use super::json::parse;
use super::problem::Problem;
use super::reply::{Reply, json, text};
use crate::App;

/// The request to explain.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainBody<'a> {
    /// The request.
    #[serde(borrow)]
    request: Original<'a>,
}

/// The route's response as text, for a gate without a server.
pub(crate) async fn explain<S: Store>(gate: &Gate<S>, body: &[u8]) -> Result<String, String> {
    let explained = explanation(gate, body).await;
    explained.map(|explanation| explanation.to_string()).map_err(|problem| problem.to_string())
}

pub(super) async fn run(app: &App, head: &Parts, body: &[u8]) -> Result<Reply, Problem> {
    let explanation = explanation(app.gate(), body).await?;
    let accepts = head.headers.get(ACCEPT);
    match accepts.is_some_and(|accepts| accepts.as_bytes().starts_with(b"text/plain")) {
        true => Ok(text(explanation.to_string())),
        false => json(&explanation),
    }
}

async fn explanation<S: Store>(gate: &Gate<S>, body: &[u8]) -> Result<Explanation, Problem> {
    let ExplainBody { request } = parse(body)?;
    let message = request.message()?;
    gate.explain(&message.request()).await.map_err(Problem::unavailable)
}
