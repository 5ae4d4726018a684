//! How calls ended that a client made, for adaptive limits.
//!
//! ```text
//! SG.REPORT limit latency OK | FAILED [COUNT n]
//! ```
//!
//! The latency is how many seconds each call took, such as `0.012`. Replies with `OK`.

use spillgate::adaptive::Ending;
use spillgate_policy::CallReport;
use spillgate_policy::store::Store;

use super::Endpoint;
use super::codec::{Args, Writer};
use super::error::{CommandError, positive, quoted};
use super::key_args::text;
use crate::protocol::report::{latency, note_all};

/// `SG.REPORT`
pub(super) fn run<S: Store>(
    endpoint: &Endpoint<S>,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let count = match args.len() {
        4 => 1,
        6 if args.is(4, "COUNT") => positive("COUNT", args.at(5))?,
        _ => return Err(CommandError::SYNTAX),
    };
    let (limit, seconds) = (text("limit", args.at(1))?, seconds(args.at(2))?);
    let report = CallReport {
        limit,
        ending: ending(args, 3).ok_or(CommandError::SYNTAX)?,
        latency: latency(seconds).map_err(CommandError::new)?,
        count,
    };
    note_all(&endpoint.enforcer, &[report]).map_err(|refused| match refused {
        Ok((_, error)) => error.into(),
        Err(detail) => CommandError::new(detail),
    })?;
    out.simple("OK");
    Ok(())
}

/// `OK` or `FAILED`.
pub(super) fn ending(args: Args<'_>, place: usize) -> Option<Ending> {
    if args.is(place, "OK") {
        Some(Ending::Ok)
    } else if args.is(place, "FAILED") {
        Some(Ending::Failed)
    } else {
        None
    }
}

fn seconds(given: &[u8]) -> Result<f64, CommandError> {
    let number = std::str::from_utf8(given).ok().and_then(|given| given.parse().ok());
    number.ok_or_else(|| {
        let given = quoted(given);
        CommandError::new(format_args!(
            "latency must be a number of seconds such as 0.012, not '{given}'"
        ))
    })
}
