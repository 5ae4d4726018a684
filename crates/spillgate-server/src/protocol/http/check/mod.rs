//! `POST /v1/check`.

mod key;
mod original;
mod request;
mod response;

use spillgate_policy::{Answer as Verdict, LimitCheck, Limits, Outcome};

pub(super) use self::key::{Key, Text};
pub(super) use self::original::Original;
pub(super) use self::request::{CheckBody, Named};
use self::request::{CheckRequest, Form, Single};
pub(super) use self::response::{CheckResponse, CheckResult, Seconds};
use super::HttpServer;
use super::json::parse;
use super::problem::Problem;
use super::reply::{JSON, Reply, content, write};
use crate::App;
use crate::protocol::join_bounded;

pub(super) async fn run(server: &HttpServer, body: &[u8]) -> Result<Reply, Problem> {
    let mut document = Vec::new();
    answer(server, body, &mut document).await?;
    Ok(content(JSON, document))
}

pub(super) async fn answer(
    server: &HttpServer,
    body: &[u8],
    document: &mut Vec<u8>,
) -> Result<(), Problem> {
    match parse::<CheckRequest<'_>>(body)?.form()? {
        // Boxed: every connection reserves room for the largest future it may wait for.
        Form::Batch(batch) => Box::pin(answer_batch(server, batch, document)).await,
        Form::Single(single) => {
            let (outcome, is_plain) = decide(&server.app, single).await?;
            write(&CheckResponse::One(CheckResult::new(&outcome, is_plain)), document)
        }
    }
}

async fn answer_batch(
    server: &HttpServer,
    batch: Vec<CheckRequest<'_>>,
    document: &mut Vec<u8>,
) -> Result<(), Problem> {
    let most = server.bounds.batch;
    if batch.len() > most {
        let detail = format!("too many checks in a batch: {}; at most {most}", batch.len());
        return Err(Problem::bad_request(detail));
    }
    // All of them, before anything is spent.
    let singles: Result<Vec<_>, _> = batch.into_iter().map(CheckRequest::single).collect();
    let questions = singles?.into_iter().map(|single| decide(&server.app, single)).collect();
    let outcomes =
        join_bounded(questions, crate::store::concurrency(server.app.gate().store())).await;
    write(&CheckResponse::of_batch(&outcomes), document)
}

/// The outcome, and whether it is of a single limit.
async fn decide(app: &App, single: Single<'_>) -> Result<(Outcome<'static>, bool), Problem> {
    match single {
        Single::Limit(named) => Ok((check(app, &[named]).await?, true)),
        Single::Several(checks) => Ok((check(app, &checks).await?, false)),
        Single::Request(original) => {
            let message = original.message()?;
            let outcome = app.enforcer().decide(&message.request()).await;
            let outcome = outcome.map_err(|error| Problem::of_store(&error))?;
            if outcome.answer() == Verdict::HostRequired {
                return Err(Problem::bad_request(
                    "the policy has limits for hosts; say in \"host\" which one the request is for",
                ));
            }
            Ok((outcome, false))
        }
    }
}

/// Spends on limits by name, all or nothing.
pub(super) async fn check(app: &App, named: &[Named<'_>]) -> Result<Outcome<'static>, Problem> {
    let parts: Vec<_> = named.iter().map(Named::parts).collect();
    let checks: Vec<_> = named
        .iter()
        .zip(&parts)
        .map(|(named, values)| LimitCheck { limit: named.limit(), values, cost: named.cost() })
        .collect();
    app.enforcer().decide(&Limits(&checks)).await.map_err(|error| {
        let unknown = named.iter().find(|named| app.gate().policy().parts(named.limit()).is_none());
        Problem::of_limit(app, unknown.or(named.first()).map_or("", Named::limit), &error)
    })
}
