//! From a request to its reply.

use std::net::IpAddr;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use hyper::body::Incoming;
use tracing::{field, info};

use super::problem::Problem;
use super::reply::Reply;
use super::routes::{Found, Level, Operation, find};
use super::{
    auth, body, check, explain, guard, keys, limits, lists, openapi, pages, policy, reserve,
};
use crate::App;

/// Answers a request, whatever it is.
pub(super) async fn answer(app: &App, peer: Option<IpAddr>, request: Request<Incoming>) -> Reply {
    let (head, body) = request.into_parts();
    let found = find(&head.method, head.uri.path());
    let operation = found.as_ref().ok().map(|found| found.route.operation);
    let level = found.as_ref().map_or(Level::Client, |found| found.route.level);
    let done = match guard::admit(&app.access(), level, &head).and(found) {
        Ok(found) => {
            let done = carry_out(app, peer, found, &head, body).await;
            if found.route.operation.is_change() {
                note(peer, found, &done);
            }
            done
        }
        Err(problem) => Err(problem),
    };
    let reply = done.unwrap_or_else(Problem::reply);
    app.stats.count(operation, reply.status());
    reply
}

async fn carry_out(
    app: &App,
    peer: Option<IpAddr>,
    found: Found<'_>,
    head: &Parts,
    body: Incoming,
) -> Result<Reply, Problem> {
    let Found { route, segments } = found;
    match route.operation {
        Operation::Check => check::run(app, &json(app, head, body).await?).await,
        Operation::Reserve => reserve::reserve(app, &json(app, head, body).await?).await,
        Operation::Settle => reserve::settle(app, &json(app, head, body).await?).await,
        Operation::Auth => auth::run(app, peer, head).await,
        Operation::Limits => limits::run(app),
        Operation::Peek => keys::peek(app, segments, head).await,
        Operation::Reset => keys::reset(app, segments, head).await,
        Operation::SetOverride => {
            let body = json(app, head, body).await?;
            keys::set_override(app, segments, head, &body).await
        }
        Operation::RemoveOverride => keys::remove_override(app, segments, head).await,
        Operation::Policy => policy::show(app),
        Operation::ReplacePolicy => policy::replace(app, head, body).await,
        Operation::List => lists::show(app, segments),
        Operation::AddToList => lists::add(app, segments),
        Operation::RemoveFromList => lists::remove(app, segments),
        Operation::Explain => explain::run(app, head, &json(app, head, body).await?).await,
        Operation::OpenApi => openapi::run(),
        Operation::Metrics => Ok(pages::metrics(app)),
        Operation::Health => Ok(pages::health()),
        Operation::Ready => pages::ready(app, head),
        Operation::Home => Ok(pages::home()),
    }
}

/// Leaves a trace of a change, or of what was refused. Keys and entries of lists may be
/// secrets, so only the limit or the list is told, and only if there is one of that name.
fn note(peer: Option<IpAddr>, found: Found<'_>, done: &Result<Reply, Problem>) {
    let [of, _] = found.segments;
    info!(
        target: "tollgate",
        peer = peer.map(field::display),
        operation = found.route.operation.name(),
        of = Some(of).filter(|of| done.is_ok() && !of.is_empty()),
        status = done.as_ref().map_or_else(Problem::status, Reply::status).as_u16(),
        "changed by an operator"
    );
}

async fn json(app: &App, head: &Parts, body: Incoming) -> Result<Bytes, Problem> {
    body::json(head, body, app.bounds.body, app.bounds.stalled).await
}
