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
//! outage that allows everyone, and for a banned caller, limit and remaining are 0. A limit in shadow mode limits nobody.
//! The wait of a shaper is not part of the reply.

use spillgate_policy::{Answer, Error, Mode, Outcome};

use super::codec::Args;
use super::error::{CommandError, natural};
use super::key_args::KeyArgs;
use super::reply::ThrottleReply;

pub(super) struct CheckArgs<'a> {
    pub(super) limit: &'a str,
    pub(super) parts: Vec<&'a str>,
    pub(super) cost: u64,
}

impl<'a> CheckArgs<'a> {
    /// Parses at least three arguments.
    pub(super) fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let KeyArgs { limit, parts, rest } = KeyArgs::parse("sg.check", args)?;
        let cost = match rest.len() {
            0 => 1,
            1 => natural("cost", rest.at(0))?,
            _ => return Err(CommandError::arity("sg.check")),
        };
        Ok(Self { limit, parts, cost })
    }
}

pub(super) fn reply(outcome: &Outcome<'_>) -> Result<ThrottleReply, CommandError> {
    if outcome.answer() == Answer::Banned {
        let retry_after = outcome.retry_after();
        return Ok(ThrottleReply { limited: true, retry_after, ..ThrottleReply::UNDECIDED });
    }
    let Some(limit) = outcome.limits().next() else {
        if !outcome.is_allowed() {
            // The caller is banned.
            let retry_after = outcome.retry_after();
            return Ok(ThrottleReply { limited: true, retry_after, ..ThrottleReply::UNDECIDED });
        }
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
