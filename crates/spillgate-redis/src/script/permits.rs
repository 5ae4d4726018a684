//! Encodes calls about permits, and small values that are compared and set.

use smallvec::SmallVec;

use super::arguments::{Argument, micros, millis};
use super::reply::Rest;
use crate::backend::{PermitCall, PermitOp, PermitReply, Result, Swap, Swapped};

/// The arguments of a call about [permits](super::PERMITS).
#[must_use]
pub fn permits(call: &PermitCall) -> SmallVec<[Argument; 10]> {
    let holder = Argument::from_slice(call.holder.as_bytes());
    let op = |name: &str| Argument::from_slice(name.as_bytes());
    match call.op {
        PermitOp::Release => [op("release"), holder, op("0")].into_iter().collect(),
        PermitOp::Renew { ttl } => [op("renew"), holder, micros(ttl)].into_iter().collect(),
        PermitOp::Revoke { late } => [op("revoke"), holder, micros(late)].into_iter().collect(),
        PermitOp::Hold(wanted) => {
            let counts = [wanted.least, wanted.needed, wanted.usable, wanted.limit, wanted.nodes];
            let numbers = [wanted.number].into_iter().chain(counts.map(u64::from));
            let numbers = numbers.chain([u64::from(wanted.is_beyond)]);
            let numbers = numbers.map(|number| op(&number.to_string()));
            [op("hold"), holder, micros(wanted.ttl)].into_iter().chain(numbers).collect()
        }
    }
}

/// Decodes the reply to a call about [permits](super::PERMITS).
///
/// # Errors
///
/// If it is malformed.
pub fn permit_reply(bytes: &[u8]) -> Result<PermitReply> {
    let mut rest = Rest(bytes);
    let (held, total, expired) = (rest.small_number()?, rest.small_number()?, rest.small_number()?);
    let is_done = rest.byte()? == 1;
    rest.end()?;
    Ok(PermitReply { held, total, expired, is_done })
}

/// The arguments that [swap](super::SWAP) a value, or only look at it.
#[must_use]
pub fn swap(swap: Option<&Swap>) -> SmallVec<[Argument; 4]> {
    match swap {
        None => [Argument::from_slice(b"0")].into_iter().collect(),
        Some(Swap { old, new, ttl }) => {
            let values = [b"1", &old[..], &new[..]].map(Argument::from_slice);
            values.into_iter().chain([millis(*ttl)]).collect()
        }
    }
}

/// Decodes the reply to a [swap](super::SWAP).
///
/// # Errors
///
/// If it is malformed.
pub fn swapped(bytes: &[u8]) -> Result<Swapped> {
    let mut rest = Rest(bytes);
    let (now, is_swapped) = (rest.moment()?, rest.byte()? == 1);
    Ok(Swapped { now, is_swapped, value: rest.0.to_vec() })
}
