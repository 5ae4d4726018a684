//! `POST /v1/explain`.

mod call;

use std::fmt;

use http::header::ACCEPT;
use http::request::Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spillgate_policy::store::Store;
use spillgate_policy::{DescriptorsExplanation, Explanation, Gate};

use self::call::{Call, CallDescriptor};
use super::check::{Original, Text};
use super::json::{Integer, parse};
use super::problem::Problem;
use super::reply::{Reply, json, text};
use crate::App;

/// What to explain.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "ExplainBody", deny_unknown_fields)]
#[expect(dead_code, reason = "describes a shape")]
pub(super) enum ExplainBody<'a> {
    /// A request.
    Request {
        /// The request.
        request: Original<'a>,
    },
    /// A call of Envoy's rate-limit service.
    Descriptors(Call<'a>),
}

/// The keys of both forms, so that an error names an unknown one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'a> {
    #[serde(borrow)]
    request: Option<Original<'a>>,
    #[serde(borrow)]
    domain: Option<Text<'a>>,
    #[serde(borrow)]
    descriptors: Option<Vec<CallDescriptor<'a>>>,
    hits_addend: Option<Integer>,
}

/// What is explained.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Explained {
    /// A request.
    Request(Box<Explanation>),
    /// The descriptors of a call.
    Descriptors(DescriptorsExplanation),
}

/// The route's response as text, for a gate without a server.
pub(crate) async fn explain<S: Store>(gate: &Gate<S>, body: &[u8]) -> Result<String, String> {
    let explained = explained(gate, body).await;
    explained.map(|explained| explained.to_string()).map_err(|problem| problem.to_string())
}

pub(super) async fn run(app: &App, head: &Parts, body: &[u8]) -> Result<Reply, Problem> {
    let explained = explained(app.gate(), body).await?;
    let accepts = head.headers.get(ACCEPT);
    match accepts.is_some_and(|accepts| accepts.as_bytes().starts_with(b"text/plain")) {
        true => Ok(text(explained.to_string())),
        false => json(&explained),
    }
}

async fn explained<S: Store>(gate: &Gate<S>, body: &[u8]) -> Result<Explained, Problem> {
    let Body { request, domain, descriptors, hits_addend } = parse(body)?;
    match (request, domain, descriptors) {
        (Some(request), None, None) if hits_addend.is_none() => {
            let message = request.message()?;
            let explained = gate.explain(&message.request()).await;
            explained.map(Box::new).map(Explained::Request).map_err(Problem::unavailable)
        }
        (None, Some(domain), Some(descriptors)) => {
            let call = Call::new(domain, descriptors, hits_addend);
            call.explained(gate).await.map(Explained::Descriptors)
        }
        _ => Err(Problem::bad_request(
            "what is explained is one of {\"request\"} and {\"domain\", \"descriptors\"}, and this \
             is neither or both",
        )),
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(explained) => explained.fmt(f),
            Self::Descriptors(explained) => explained.fmt(f),
        }
    }
}
