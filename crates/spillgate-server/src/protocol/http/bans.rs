//! `/v1/bans`: callers that are refused for a while, and `/v1/strikes`: offences that lead to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json as example;
use spillgate_policy::store::Store;
use spillgate_policy::{Ban, Mode, rfc3339};

use super::check::{Key, Seconds, Text};
use super::json::parse;
use super::parameters::segment;
use super::problem::Problem;
use super::reply::{Reply, json, no_content};
use super::terms::Ttl;
use crate::App;

/// The bans in force, by their end.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Bans")]
pub(super) struct BanList {
    bans: Vec<BanEntry>,
}

/// A ban.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ban")]
pub(super) struct BanEntry {
    /// Who is banned: an address, `api-key:NAME` or `user:NAME`.
    caller: String,
    /// The operator's reason, or what led to it.
    reason: String,
    /// The limit whose strikes led to it; null if an operator set it.
    limit: Option<String>,
    /// Which ban of the caller it is, since earlier ones were forgotten.
    count: u32,
    /// Whether it refuses, or is only counted.
    mode: Mode,
    /// When it began.
    since: String,
    /// When it ends.
    expires: String,
    /// Seconds until it ends.
    expires_in: Seconds,
}

/// A ban to be set.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BanBody", example = example!({ "ttl": "1h", "reason": "credential stuffing" }))]
pub(super) struct BanBody<'a> {
    /// How long the ban lasts from now, from 1 second to 365 days.
    ttl: Ttl,
    /// Why, for other operators: one line of at most 256 bytes.
    #[serde(borrow)]
    reason: Option<Text<'a>>,
}

/// An offence.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StrikeBody", example = example!({ "limit": "login", "key": "42" }))]
pub(super) struct StrikeBody<'a> {
    /// The name of a limit with a `ban`.
    #[serde(borrow)]
    limit: Text<'a>,
    /// Who offended, written as in a check.
    #[serde(borrow)]
    key: Option<Key<'a>>,
}

/// What an offence led to.
#[derive(Serialize, JsonSchema)]
pub(super) struct Struck {
    /// The ban; null if it takes more offences.
    ban: Option<BanEntry>,
}

pub(super) fn list(app: &App) -> Result<Reply, Problem> {
    json(&BanList { bans: app.gate().bans().iter().map(|ban| BanEntry::new(app, ban)).collect() })
}

pub(super) fn show(app: &App, [caller, _]: [&str; 2]) -> Result<Reply, Problem> {
    let caller = segment("the caller", caller)?;
    let ban = app.gate().ban_of(&caller).map_err(|error| Problem::refused(&error))?;
    json(&BanEntry::new(app, &ban.ok_or_else(not_banned)?))
}

pub(super) async fn set(app: &App, [caller, _]: [&str; 2], body: &[u8]) -> Result<Reply, Problem> {
    let caller = segment("the caller", caller)?;
    let BanBody { ttl, reason } = parse(body)?;
    let ttl = ttl.duration()?;
    let ban = app.gate().ban(&caller, ttl, reason.as_ref().map(Text::as_str)).await;
    json(&BanEntry::new(app, &ban.map_err(|error| refused(&error))?))
}

pub(super) async fn lift(app: &App, [caller, _]: [&str; 2]) -> Result<Reply, Problem> {
    let caller = segment("the caller", caller)?;
    match app.gate().lift(&caller).await.map_err(|error| refused(&error))? {
        true => Ok(no_content()),
        false => Err(not_banned()),
    }
}

pub(super) async fn strike(app: &App, body: &[u8]) -> Result<Reply, Problem> {
    let StrikeBody { limit, key } = parse(body)?;
    let (limit, parts) = (limit.as_str(), key.as_ref().map(Key::parts).unwrap_or_default());
    let ban = app.enforcer().strike(limit, &parts).await;
    let ban = ban.map_err(|error| Problem::of_limit(app, limit, &error))?;
    json(&Struck { ban: ban.map(|ban| BanEntry::new(app, &ban)) })
}

impl BanEntry {
    fn new(app: &App, ban: &Ban) -> Self {
        Self {
            caller: ban.caller_text().to_owned(),
            reason: ban.reason().to_owned(),
            limit: ban.limit().map(ToOwned::to_owned),
            count: ban.count(),
            mode: ban.mode(),
            since: rfc3339::format(ban.since()),
            expires: rfc3339::format(ban.until()),
            expires_in: Seconds(Some(ban.until().since(app.gate().store().now()))),
        }
    }
}

fn not_banned() -> Problem {
    Problem::not_found("this caller is not banned")
}

fn refused(error: &spillgate_policy::Error) -> Problem {
    if error.is_store() { Problem::unavailable(error) } else { Problem::refused(error) }
}
