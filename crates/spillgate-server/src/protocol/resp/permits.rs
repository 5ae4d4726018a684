//! Permits of a concurrency limit, held by a client until it releases them or they expire.
//!
//! ```text
//! SG.ACQUIRE limit key [COUNT n] [EX seconds | PX milliseconds]
//! SG.ACQUIRE limit PARTS n part1 … partn [COUNT n] [EX seconds | PX milliseconds]
//! SG.RENEW permit EX seconds | PX milliseconds
//! SG.RELEASE permit [OK | FAILED]
//! ```
//!
//! `SG.ACQUIRE` replies with the permit, or nil if all are held; then the limit, what remains, and
//! the milliseconds until the permit expires (until a retry makes sense, if there is none). The
//! others reply with 1, or 0 if the permit is unknown, was released, or has expired.

use std::time::Duration;

use spillgate::Decision;
use spillgate_policy::store::{PermitId, Store};

use super::Endpoint;
use super::codec::{Args, Writer};
use super::error::{CommandError, positive};
use super::key_args::KeyArgs;
use super::reports::ending;

/// `SG.ACQUIRE`
pub(super) async fn acquire<S: Store>(
    endpoint: &Endpoint<S>,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let KeyArgs { limit, parts, rest } = KeyArgs::parse("sg.acquire", args)?;
    let Options { count, ttl } = Options::parse(rest, true)?;
    let acquired = endpoint.enforcer.acquire(limit, &parts, count, ttl).await?;
    out.array(4);
    let decision = acquired.decision();
    let time = match acquired.id() {
        Some(id) => {
            out.bulk(id.to_string());
            Some(acquired.ttl())
        }
        None => {
            out.null();
            acquired.outcome().retry_after()
        }
    };
    for number in [decision.map(Decision::limit), decision.map(Decision::remaining)] {
        out.integer(i64::try_from(number.unwrap_or_default()).unwrap_or(i64::MAX));
    }
    out.integer(time.map_or(-1, whole_millis));
    Ok(())
}

/// `SG.RENEW`
pub(super) async fn renew<S: Store>(
    endpoint: &Endpoint<S>,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let Options { ttl, .. } = Options::parse(args.skip(2), false)?;
    let ttl = ttl.ok_or(CommandError::SYNTAX)?;
    let is_renewed = match permit(args.at(1)) {
        Some(id) => endpoint.enforcer.renew(id, ttl).await?,
        None => false,
    };
    out.integer(is_renewed.into());
    Ok(())
}

/// `SG.RELEASE`
pub(super) async fn release<S: Store>(
    endpoint: &Endpoint<S>,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let ending = match args.len() {
        3 => Some(ending(args, 2).ok_or(CommandError::SYNTAX)?),
        _ => None,
    };
    let is_released = match (permit(args.at(1)), ending) {
        (Some(id), Some(ending)) => endpoint.enforcer.release_as(id, ending).await?,
        (Some(id), None) => endpoint.enforcer.release(id).await?,
        (None, _) => false,
    };
    out.integer(is_released.into());
    Ok(())
}

/// What is no permit is one that nobody holds.
fn permit(text: &[u8]) -> Option<PermitId> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

struct Options {
    count: u64,
    ttl: Option<Duration>,
}

impl Options {
    fn parse(mut args: Args<'_>, counts: bool) -> Result<Self, CommandError> {
        let (mut count, mut ttl) = (None, None);
        while !args.is_empty() {
            let value = args.get(1).ok_or(CommandError::SYNTAX)?;
            if counts && args.is(0, "COUNT") && count.is_none() {
                count = Some(positive("COUNT", value)?);
            } else if args.is(0, "EX") && ttl.is_none() {
                ttl = Some(Duration::from_secs(positive("EX", value)?));
            } else if args.is(0, "PX") && ttl.is_none() {
                ttl = Some(Duration::from_millis(positive("PX", value)?));
            } else {
                return Err(CommandError::SYNTAX);
            }
            args = args.skip(2);
        }
        Ok(Self { count: count.unwrap_or(1), ttl })
    }
}

/// Rounded up.
fn whole_millis(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
