//! `SG.CHECK`: a limit of the policy, by name.
//!
//! ```text
//! SG.CHECK limit key [cost]
//! SG.CHECK limit PARTS n part1 … partn [cost]
//! ```
//!
//! The first form is for limits counted per one part, such as an address. The second is for those
//! counted per several parts, or per none (`PARTS 0`); a key that reads `PARTS` is written
//! `PARTS 1 PARTS`. The cost is 1 by default, and 0 only peeks. The reply is that of
//! [`CL.THROTTLE`](super::throttle); its last integer is -1 if the limit never refills. In an
//! outage that allows everyone, limit and remaining are 0. A limit in shadow mode limits nobody.
//! The wait of a shaper is not part of the reply.

use spillgate_policy::{Error, Mode, Outcome};

use super::codec::Args;
use super::error::{CommandError, natural, quoted};
use super::reply::ThrottleReply;

pub(super) struct CheckArgs<'a> {
    pub(super) limit: &'a str,
    pub(super) parts: Vec<&'a str>,
    pub(super) cost: u64,
}

impl<'a> CheckArgs<'a> {
    /// Parses at least three arguments.
    pub(super) fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let limit = text("limit", args.at(1))?;
        let (first, count) = if args.is(2, "PARTS") { (4, count(args)?) } else { (2, 1) };
        let rest = args.skip(first);
        let cost = match rest.len().checked_sub(count) {
            Some(0) => 1,
            Some(1) => natural("cost", rest.at(count))?,
            Some(_) | None => return Err(CommandError::arity("sg.check")),
        };
        let parts = rest.iter().take(count).map(|part| text("key", part)).collect::<Result<_, _>>();
        Ok(Self { limit, parts: parts?, cost })
    }
}

pub(super) fn reply(outcome: &Outcome<'_>) -> Result<ThrottleReply, CommandError> {
    let Some(limit) = outcome.limits().next() else {
        // A limit in shadow mode whose store failed decides nothing.
        return match outcome.shadow_error() {
            Some(_) => Err(CommandError::from(Error::store("nothing was decided"))),
            None => Ok(ThrottleReply::UNDECIDED),
        };
    };
    let reply = ThrottleReply::from(*limit.decision());
    Ok(match limit.mode() {
        Mode::Shadow => ThrottleReply { limited: false, retry_after: None, ..reply },
        _ => reply,
    })
}

fn count(args: Args<'_>) -> Result<usize, CommandError> {
    let count = args.get(3).ok_or_else(|| CommandError::arity("sg.check"))?;
    // More than fit into a `usize` are more than were given.
    Ok(usize::try_from(natural("the number of parts", count)?).unwrap_or(usize::MAX))
}

/// Policies are text, and so is what they are asked about.
fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, CommandError> {
    std::str::from_utf8(bytes).map_err(|_| {
        CommandError::new(format_args!("{name} must be UTF-8, not '{}'", quoted(bytes)))
    })
}
