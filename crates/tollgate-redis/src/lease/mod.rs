//! Slices of a bucket that a node takes ahead of use and spends at the speed of memory.
//!
//! # Why the fleet never admits too much
//!
//! Think of a bucket as a line of time that is divided into slots, each as long as one token
//! takes to be refilled, `T`. The bucket's word is where the slots end that are given away:
//! to spend `c` tokens at a time `t` is to be given those from `max(word, t)` on, `c·T` long,
//! and it passes if they end by `t + burst·T`. No slot is given away twice, since the word
//! only moves on.
//!
//! A slice is a number of slots that were given to a node. The node may spend each once, but
//! only in time: **at `t` it spends slots that begin at `t` or later**. Those that pass
//! unspent are lost. That is how a slice melts, at the pace at which the bucket is refilled.
//!
//! So whoever spends a token at `t`, out of a slice or not, spends a slot that lies between
//! `t` and `t + burst·T`. What is spent between `a` and `b` are different slots between `a`
//! and `b + burst·T`, each `T` long: at most `burst + (b - a)/T`. That is the guarantee of a
//! single bucket. It needs no clock but the engine's, of which a node knows how late
//! [it can be](crate::sighting::Sighting).
//!
//! - A node that dies takes its slices with it, and others find those slots passed.
//! - A slice that is idle is given back: the word is put back to where the unspent slots
//!   begin, but only if it is still where the slice ends. Otherwise slots beyond it belong to
//!   others. It is sent at most once, and the slice is forgotten before.
//! - A refund moves the word back by what was spent before, perhaps into a slice that is
//!   held. Slots are then given away twice, but not more of them than were refunded: at most
//!   `burst + (b - a)/T`, and what was refunded between `a - burst·T` and `b`.
//! - Slots of one tier are not as long as those of another. Who is asked for in another tier
//!   begins a lease anew, and what it held is given back or lost.
//!
//! # What is held back
//!
//! Tokens in a slice cannot be spent by other nodes. Each holds at most half the burst
//! divided by the number of nodes, so all together hold at most half. Quotas of which that
//! would be less than eight tokens are not leased, nor are kinds other than token buckets and
//! meters: each of their calls asks the engine.

mod bucket;
mod caller_lease;
mod flight;
mod held;
mod inner;
mod keeper;
mod leases;
mod size;
mod slice;
mod source;
mod stats;
mod table;
mod take;
#[cfg(test)]
mod tests;

pub(crate) use self::caller_lease::Spent;
pub(crate) use self::leases::Leases;
pub(crate) use self::source::{Named, Source, Taken};
pub use self::stats::LeaseStats;
pub(crate) use self::table::Place;
