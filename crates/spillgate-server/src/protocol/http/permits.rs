//! `/v1/permits`: permits of a concurrency limit, held until they are released or expire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json as example;
use spillgate_policy::store::PermitId;

use super::HttpServer;
use super::check::{CheckResult, Key, Seconds, Text};
use super::json::{Integer, parse};
use super::parameters::{Query, segment};
use super::problem::Problem;
use super::reply::{Reply, json, no_content};
use super::reports;
use super::terms::Ttl;

/// Permits to be acquired.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AcquireBody", example = example!({ "limit": "jobs", "key": "user:42" }))]
pub(super) struct AcquireBody<'a> {
    /// The name of a concurrency limit.
    #[serde(borrow)]
    limit: Text<'a>,
    /// Whom it counts; absent if it counts everyone together.
    #[serde(borrow)]
    key: Option<Key<'a>>,
    /// How many permits: 1 if absent.
    #[schemars(range(min = 1))]
    count: Option<Integer>,
    /// After how long without being renewed they expire, from 1 second to 1 day: what the limit
    /// says if absent.
    ttl: Option<Ttl>,
}

/// What was decided, and how to release it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Acquired")]
pub(super) struct AcquiredPermit<'a> {
    #[serde(flatten)]
    answer: CheckResult<'a>,
    /// To be renewed and released; null if it is not allowed.
    permit: Option<String>,
    /// Seconds until it expires, unless it is renewed; null if there is none.
    expires_in: Seconds,
}

/// How long a permit is held from now.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RenewBody", example = example!({ "ttl": "30s" }))]
pub(super) struct RenewBody {
    /// After how long it expires, from 1 second to 1 day.
    ttl: Ttl,
}

/// A permit that was renewed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Renewed {
    /// Seconds until it expires.
    expires_in: Seconds,
}

pub(super) async fn acquire(server: &HttpServer, body: &[u8]) -> Result<Reply, Problem> {
    let AcquireBody { limit, key, count, ttl } = parse(body)?;
    let (limit, parts) = (limit.as_str(), key.as_ref().map(Key::parts).unwrap_or_default());
    let count = count.map_or(1, |Integer(count)| count);
    let ttl = ttl.map(|ttl| ttl.duration()).transpose()?;
    let acquired = server.app.enforcer().acquire(limit, &parts, count, ttl).await;
    let acquired = acquired.map_err(|error| Problem::of_limit(&server.app, limit, &error))?;
    json(&AcquiredPermit {
        answer: CheckResult::new(acquired.outcome(), true),
        permit: acquired.id().map(|id| id.to_string()),
        expires_in: Seconds(acquired.id().map(|_| acquired.ttl())),
    })
}

pub(super) async fn renew(
    server: &HttpServer,
    [permit, _]: [&str; 2],
    body: &[u8],
) -> Result<Reply, Problem> {
    let ttl = parse::<RenewBody>(body)?.ttl.duration()?;
    let is_renewed = server.app.enforcer().renew(id(permit)?, ttl).await.map_err(failed)?;
    if is_renewed { json(&Renewed { expires_in: Seconds(Some(ttl)) }) } else { Err(unknown()) }
}

pub(super) async fn release(
    server: &HttpServer,
    [permit, _]: [&str; 2],
    query: &Query,
) -> Result<Reply, Problem> {
    let (ending, id, enforcer) = (reports::ending(query)?, id(permit)?, server.app.enforcer());
    let released = match ending {
        Some(ending) => enforcer.release_as(id, ending).await,
        None => enforcer.release(id).await,
    };
    let is_released = released.map_err(failed)?;
    if is_released { Ok(no_content()) } else { Err(unknown()) }
}

/// What is no permit is one that nobody holds.
fn id(permit: &str) -> Result<PermitId, Problem> {
    segment("the permit", permit)?.parse().map_err(|()| unknown())
}

fn unknown() -> Problem {
    Problem::not_found("unknown permit: it was released, has expired, or was never acquired")
}

fn failed(error: spillgate_policy::Error) -> Problem {
    if error.is_store() { Problem::of_store(&error) } else { Problem::bad_request(error) }
}
