//! `CL.THROTTLE key max_burst count period [quantity]`: a token bucket whose quota comes with the
//! call.
//!
//! The bucket holds `max_burst + 1` tokens and refills by `count` per `period` seconds. A call
//! takes `quantity` tokens, 1 by default, if the bucket has as many; 0 only peeks. The reply has
//! the five integers of redis-cell:
//!
//! 1. 1 if the call is limited, 0 if it is allowed,
//! 2. the limit, `max_burst + 1`,
//! 3. the remaining tokens,
//! 4. seconds until the same call would be allowed; -1 if it was allowed, or never will be because
//!    the quantity exceeds the limit,
//! 5. seconds until the bucket is full again.
//!
//! Seconds are rounded up. (redis-cell rounds up too, but drops less than a millisecond.)
//!
//! # One key, several quotas
//!
//! What is kept of a key is the time at which its bucket is full again. A call with other
//! parameters finds that time, not a number of tokens: a caller who has spent an hour's worth stays
//! limited for as long under a smaller quota. Keys are bytes.
//!
//! # Limits
//!
//! The interval between two tokens is rounded up to a nanosecond, so `count` is at most 10⁹ per
//! second, and a full bucket takes at most 146 years to refill. Parameters out of range get an
//! error reply and spend nothing.

use std::time::Duration;

use spillgate::Quota;
use spillgate_policy::store::CallQuota;
use spillgate_policy::{Outcome, Throttle};

use super::codec::Args;
use super::error::{CommandError, natural, positive};
use super::reply::ThrottleReply;

pub(super) fn question<'a>(args: Args<'a>) -> Result<Throttle<'a>, CommandError> {
    let max_burst = natural("max_burst", args.at(2))?;
    let count = positive("count", args.at(3))?;
    let period = positive("period", args.at(4))?;
    let cost = args.get(5).map_or(Ok(1), |text| natural("quantity", text))?;
    // No overflow: these numbers are below 2⁶³.
    let quota = Quota::per(count, Duration::from_secs(period)).burst(max_burst + 1);
    let quota = quota.build().map_err(CommandError::new)?;
    let quota = CallQuota::new(quota).map_err(CommandError::new)?;
    Ok(Throttle { key: args.at(1), quota, cost })
}

pub(super) fn reply(cost: u64, outcome: &Outcome<'_>) -> ThrottleReply {
    let Some(decision) = outcome.decision() else { return ThrottleReply::UNDECIDED };
    let reply = ThrottleReply::from(*decision);
    // A peek takes nothing, so it is always allowed. But if more was spent under a larger quota
    // than this one holds, it shows when that will be over, as in redis-cell.
    let overdrawn = decision.overdrawn_for().filter(|beyond| cost == 0 && !beyond.is_zero());
    match overdrawn {
        Some(beyond) => {
            ThrottleReply { limited: true, retry_after: Some(beyond), ..reply }.full_after(beyond)
        }
        None => reply,
    }
}
