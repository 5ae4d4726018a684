//! From a request to its reply.

use std::net::IpAddr;
use std::pin::Pin;

use http::Request;
use http::request::Parts;
use hyper::body::Incoming;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task;
use tracing::{field, info};

use super::problem::Problem;
use super::reply::{Reply, Unchanged};
use super::routes::{Content, Found, Level, Operation, find};
use super::{
    HttpServer, access, auth, bans, body, check, explain, home, limits, lists, live, openapi,
    overrides, page, pages, permits, policy, reports, reserve,
};

pub(super) async fn answer(
    server: &HttpServer,
    peer: Option<IpAddr>,
    request: Request<Incoming>,
) -> Reply {
    let (head, body) = request.into_parts();
    let found = find(&head.method, head.uri.path());
    let operation = found.as_ref().ok().map(|found| found.route.operation);
    // Without its type: the futures of all routes nest deeper than the compiler follows.
    let done: Pin<Box<dyn Future<Output = _> + Send>> =
        Box::pin(answer_found(server, peer, found, &head, body));
    let reply = done.await.unwrap_or_else(|problem| match head.uri.path() {
        // Whatever the method is.
        auth::PATH => auth::refuse(head.uri.query(), problem),
        _ => problem.reply(),
    });
    server.stats.count(operation, reply.status());
    reply
}

async fn answer_found(
    server: &HttpServer,
    peer: Option<IpAddr>,
    found: Result<Found<'_>, Problem>,
    head: &Parts,
    body: Incoming,
) -> Result<Reply, Problem> {
    let level = found.as_ref().map_or(Level::Client, |found| found.route.level);
    access::admit(&server.app.access(), level, head)?;
    let found = found?;
    let done = carry_out(server, peer, found, head, body).await;
    if found.route.operation.is_change() {
        note(peer, found, &done);
    }
    done
}

async fn carry_out(
    server: &HttpServer,
    peer: Option<IpAddr>,
    found: Found<'_>,
    head: &Parts,
    body: Incoming,
) -> Result<Reply, Problem> {
    let app = &*server.app;
    let Found { route, segments } = found;
    let query = &route.query(head.uri.query())?;
    let body = match route.request {
        Content::None => body::none(body, server.bounds.stalled).await?,
        Content::Json(_) => {
            body::json(head, body, server.bounds.body, server.bounds.stalled).await?
        }
        Content::OptionalJson(_) => {
            body::optional_json(head, body, server.bounds.body, server.bounds.stalled).await?
        }
        Content::Text(_) => policy::text(server, head, body).await?,
    };
    match route.operation {
        Operation::Check => check::run(server, &body).await,
        Operation::Reserve => reserve::reserve(server, &body).await,
        Operation::Settle => reserve::settle(server, &body).await,
        Operation::Acquire => permits::acquire(server, &body).await,
        Operation::Renew => permits::renew(server, segments, &body).await,
        Operation::Release => permits::release(server, segments, query).await,
        Operation::Strike => bans::strike(app, &body).await,
        Operation::Report => reports::run(server, &body),
        Operation::Bans => bans::list(app),
        Operation::ShowBan => bans::show(app, segments),
        Operation::SetBan => bans::set(app, segments, &body).await,
        Operation::LiftBan => bans::lift(app, segments).await,
        Operation::Auth => Ok(auth::answer(app, peer, head).await),
        Operation::Limits => limits::list(app),
        Operation::Peek => limits::peek(app, segments, query).await,
        Operation::Reset => limits::reset(app, segments, query).await,
        Operation::SetOverride => overrides::set(app, segments, query, &body).await,
        Operation::RemoveOverride => overrides::remove(app, segments, query).await,
        Operation::Overrides => overrides::all(app),
        Operation::LimitOverrides => overrides::of_limit(app, segments),
        Operation::Policy => policy::show(app),
        Operation::ReplacePolicy => policy::replace(app, &body),
        Operation::List => lists::show(app, segments),
        Operation::ListEntry => lists::show_entry(app, segments),
        Operation::AddToList => lists::add(app, segments, query, &body).await,
        Operation::RemoveFromList => lists::remove(app, segments).await,
        Operation::Explain => explain::run(app, head, &body).await,
        Operation::Status => live::status(server, head, query),
        Operation::History => live::history(app, query),
        Operation::Top => live::top(app, head, query),
        Operation::OpenApi => openapi::run(),
        Operation::Metrics => Ok(pages::metrics(app, head)),
        Operation::Health => Ok(pages::health()),
        Operation::Ready => pages::ready(app, head),
        Operation::Home => home::run(server, head),
        Operation::PageFile => page::file(segments[0]),
    }
}

/// Logs a change by an operator. Keys and list entries may be secrets, so only the limit or list is
/// logged, and only if it exists.
fn note(peer: Option<IpAddr>, found: Found<'_>, done: &Result<Reply, Problem>) {
    // The first segment of a ban is the caller.
    let of = match found.route.operation {
        Operation::SetBan | Operation::LiftBan => "",
        _ => found.segments[0],
    };
    let status = done.as_ref().map_or_else(Problem::status, Reply::status);
    let outcome = match done {
        Ok(reply) if reply.extensions().get::<Unchanged>().is_some() => "unchanged",
        Ok(_) => "changed",
        // What the store did not confirm may have happened all the same.
        Err(_) if status.is_server_error() => "failed",
        Err(_) => "refused",
    };
    info!(
        target: "spillgate",
        peer = peer.map(field::display),
        operation = found.route.operation.name(),
        of = Some(of).filter(|of| done.is_ok() && !of.is_empty()),
        status = status.as_u16(),
        outcome,
        "admin request"
    );
}

/// Runs slow work while other threads take over this one's connections. On a single-threaded
/// runtime they wait.
pub(super) fn block_in_place<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => task::block_in_place(work),
        _ => work(),
    }
}
