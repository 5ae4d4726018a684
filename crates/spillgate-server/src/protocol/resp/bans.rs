//! Bans: listed, set and lifted by operators, and offences that clients report.
//!
//! ```text
//! SG.STRIKE limit key
//! SG.BANS
//! SG.BAN caller seconds [reason]
//! SG.LIFT caller
//! ```
//!
//! `SG.STRIKE` reports an offence of a caller under a limit with a `ban`, with `PARTS` as in
//! `SG.CHECK`, and replies with the seconds that the caller is banned for, or 0. The others are for
//! operators: authenticate with the server's token first. `SG.BANS` lists caller, seconds left,
//! number of the ban, and reason.

use std::time::Duration;

use spillgate_policy::store::Store;
use spillgate_policy::{Ban, Error};

use super::Endpoint;
use super::codec::{Args, Writer};
use super::error::{CommandError, positive};
use super::key_args::{KeyArgs, text};

/// `SG.STRIKE`
pub(super) async fn strike<S: Store>(
    endpoint: &Endpoint<S>,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let KeyArgs { limit, parts, rest } = KeyArgs::parse("sg.strike", args)?;
    if !rest.is_empty() {
        return Err(CommandError::arity("sg.strike"));
    }
    let ban = endpoint.enforcer.strike(limit, &parts).await?;
    out.integer(ban.map_or(0, |ban| seconds_left(endpoint, &ban)));
    Ok(())
}

/// `SG.BANS`
pub(super) fn list<S: Store>(endpoint: &Endpoint<S>, out: &mut Writer) {
    let bans = endpoint.enforcer.gate().bans();
    out.array(bans.len());
    for ban in bans {
        out.array(4);
        out.bulk(ban.caller_text());
        out.integer(seconds_left(endpoint, &ban));
        out.integer(ban.count().into());
        out.bulk(ban.reason());
    }
}

/// `SG.BAN`
pub(super) async fn ban<S: Store>(
    endpoint: &Endpoint<S>,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let caller = text("caller", args.at(1))?;
    let duration = Duration::from_secs(positive("seconds", args.at(2))?);
    let reason = args.get(3).map(|reason| text("reason", reason)).transpose()?;
    let banned = endpoint.enforcer.gate().ban(caller, duration, reason).await;
    banned.map_err(for_operators)?;
    out.simple("OK");
    Ok(())
}

/// `SG.LIFT`
pub(super) async fn lift<S: Store>(
    endpoint: &Endpoint<S>,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let caller = text("caller", args.at(1))?;
    let is_lifted = endpoint.enforcer.gate().lift(caller).await.map_err(for_operators)?;
    out.integer(is_lifted.into());
    Ok(())
}

fn for_operators(error: Error) -> CommandError {
    CommandError::new(error)
}

/// Rounded up.
fn seconds_left<S: Store>(endpoint: &Endpoint<S>, ban: &Ban) -> i64 {
    let left = ban.until().since(endpoint.enforcer.gate().store().now());
    i64::try_from(left.as_nanos().div_ceil(1_000_000_000)).unwrap_or(i64::MAX)
}
