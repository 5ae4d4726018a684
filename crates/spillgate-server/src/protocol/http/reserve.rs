//! `POST /v1/reserve` and `/v1/settle`.

use std::time::Duration;

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spillgate::{Clock, SystemClock};
use spillgate_policy::store::Settlement;
use spillgate_policy::{Error, Receipt};

use super::HttpServer;
use super::check::{CheckResult, Key, Named, Seconds, Text, check};
use super::json::{Integer, parse};
use super::problem::Problem;
use super::reply::{Reply, json};
use super::reservations::Reservation;

/// How long a reservation can be settled, in seconds.
const EXPIRES_IN: u64 = 10 * 60;
const LONGEST: u64 = 24 * 60 * 60;

/// What is to be reserved.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReserveBody<'a> {
    /// The limit's name.
    #[serde(borrow)]
    limit: Text<'a>,
    /// Whom it counts; absent if it counts everyone together.
    #[serde(borrow)]
    key: Option<Key<'a>>,
    /// The estimate: 1 if absent.
    cost: Option<Integer>,
    /// Seconds in which it can be settled: 600 if absent, at most 86,400. Later, the
    /// estimate stands.
    #[schemars(range(min = 1, max = 86_400))]
    expires_in: Option<Integer>,
}

/// What was decided, and how to settle it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reserved<'a> {
    #[serde(flatten)]
    answer: CheckResult<'a>,
    /// To be given when it is settled; null if it is not allowed.
    reservation: Option<String>,
}

/// What something cost that was reserved.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SettleBody<'a> {
    /// What the reservation was called.
    #[serde(borrow)]
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    reservation: Text<'a>,
    /// The actual cost. More than was reserved is taken, also beyond what there is, up to the
    /// limit's `max-debt`. Less is given back, unless it has been refilled since.
    cost: Integer,
}

/// What is left once something is settled.
#[derive(Serialize, JsonSchema)]
pub(super) struct Settled<'a> {
    /// The limit's name.
    limit: &'a str,
    /// What was reserved.
    reserved: u64,
    /// What it cost.
    cost: u64,
    /// What of it was not charged, since the caller would owe more than the limit's
    /// `max-debt`: mostly 0.
    uncharged: u64,
    /// The most that can be spent at once.
    max: u64,
    /// How much can still be spent now.
    remaining: u64,
    /// Seconds until all is back; null if what is spent stays spent.
    reset_after: Seconds,
}

pub(super) async fn reserve(server: &HttpServer, body: &[u8]) -> Result<Reply, Problem> {
    let ReserveBody { limit, key, cost, expires_in } = parse(body)?;
    let expires_in = expires_in.map_or(EXPIRES_IN, |Integer(seconds)| seconds);
    if !(1..=LONGEST).contains(&expires_in) {
        return Err(Problem::bad_request(format_args!(
            "expires_in is {expires_in}; it must be from 1 to {LONGEST} seconds"
        )));
    }
    let reservable = server.app.gate().expect_reservable(limit.as_str());
    reservable.map_err(|error| Problem::of_limit(&server.app, limit.as_str(), &error))?;
    let named = Named::new(limit, key, cost);
    // Before anything is spent.
    let ids = [id()?, id()?];
    let mut outcome = check(&server.app, std::slice::from_ref(&named)).await?;
    let id = match outcome.receipt() {
        Some(receipt) => Some(keep(server, receipt, ids, Duration::from_secs(expires_in)).await),
        None => None,
    };
    let reservation = id.map(|id| format!("{id:032x}"));
    json(&Reserved { answer: CheckResult::new(&outcome, true), reservation })
}

/// Keeps a reservation in Redis if there is one, so that any server can settle it, else here.
/// Returns which of the two IDs it has.
async fn keep(
    server: &HttpServer,
    receipt: Receipt,
    [shared, own]: [u128; 2],
    lifetime: Duration,
) -> u128 {
    if let Ok(true) = server.app.enforcer().deposit(&receipt, shared, lifetime).await {
        return shared;
    }
    let now = SystemClock.now();
    // Under another ID: Redis may have it although it did not answer, and one ID in two places
    // could be settled twice.
    server.reservations.add(own, Reservation { receipt, expires: now + lifetime }, now);
    own
}

pub(super) async fn settle(server: &HttpServer, body: &[u8]) -> Result<Reply, Problem> {
    let SettleBody { reservation, cost: Integer(cost) } = parse(body)?;
    let settled = match u128::from_str_radix(reservation.as_str(), 16) {
        Ok(id) => settle_kept(server, id, cost).await.map_err(|error| Problem::of_store(&error))?,
        Err(_) => None,
    };
    let Some(Settlement { limit, reserved, settled }) = settled else {
        return Err(Problem::not_found(
            "unknown reservation: it was settled, has expired, or was evicted; \
             what it reserved stays spent",
        ));
    };
    let Some(settled) = settled else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format_args!(
                "the limit {limit:?} was removed or changed since; what was reserved \
                 stays spent"
            ),
        ));
    };
    json(&Settled::new(&limit, reserved, cost, settled))
}

/// Settles a reservation, wherever it is kept; `None` if it is nowhere.
async fn settle_kept(
    server: &HttpServer,
    id: u128,
    cost: u64,
) -> Result<Option<Settlement>, Error> {
    match server.reservations.take(id, SystemClock.now()) {
        Some(Reservation { receipt, .. }) => {
            server.app.enforcer().settle_actual(receipt, cost).await.map(Some)
        }
        None => server.app.enforcer().settle_deposit(id, cost).await,
    }
}

impl<'a> Settled<'a> {
    fn new(limit: &'a str, reserved: u64, cost: u64, settled: spillgate::Settled) -> Self {
        let spillgate::Settled { left, uncharged } = settled;
        let (max, remaining) = (left.limit(), left.remaining());
        let reset_after = Seconds(left.reset_after());
        Self { limit, reserved, cost, uncharged, max, remaining, reset_after }
    }
}

/// A name that nobody can guess.
fn id() -> Result<u128, Problem> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        let detail = format!("failed to read random bytes: {error}");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    })?;
    Ok(u128::from_le_bytes(bytes))
}
