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
//! single bucket. It needs no clock but Redis's, of which a node knows how late
//! [it can be](crate::clock_sample::ClockSample).
//!
//! - A node that dies takes its slices with it, and others find those slots passed.
//! - A slice that is idle is given back: the word is put back to where the unspent slots
//!   begin, but only if it is still where the slice ends. Otherwise slots beyond it belong to
//!   others. The slice is forgotten before that is sent. If the answer is that nothing was put
//!   back, the slots are still this node's, and it goes on holding them; if there is no answer,
//!   they are lost.
//! - A call that was paid out of a slice, or by Redis right before the slice, has spent
//!   exactly the slots that end at the word of its decision. If those are the ones before the
//!   first unspent one of a slice, what the call has not used is that slice's again: nobody
//!   else has those slots, and they still pass when they begin.
//! - A refund at Redis moves the word back by what was spent before. If what the word
//!   passes over is spent, it is as if that had been paid with the slots which are refunded:
//!   they had not begun. If it is held in a slice, slots are given away twice, but not more of
//!   them than were refunded: at most `burst + (b - a)/T`, and what was refunded between
//!   `a - burst·T` and `b`. So a caller whose reservations are kept for other nodes to settle
//!   spends as many calls at Redis as there are reservations: then what the word passes
//!   over is spent, no slice is left behind by it, and nothing is lost.
//! - Slots of one tier are not as long as those of another. Who is asked for in another tier
//!   begins a lease anew, and what it held is given back or lost.
//!
//! # What it costs
//!
//! A take brings what will be asked for in a tenth of a second, and so there are some ten a
//! second. That holds while there is enough in the bucket. When a take leaves less than a
//! batch, [no other is sent](bucket_word) until a batch has been refilled, and calls are denied
//! until then, told when that will be. A batch is what is refilled in a tenth of a second, or
//! a node's share if that is less. So whatever is asked for, a take either comes a tenth of a
//! second after the one before or brings a share, of which no more are refilled than
//! `2·nodes·rate/burst` in a second. That a few more are sent when a full bucket is drained,
//! `2·nodes` at most, and that what is idle is given back, leaves it below 25 a second where a
//! share lasts. Where it would be more than a hundred, calls ask Redis for themselves.
//!
//! Nodes wait a little longer than they must, each time by another part of half a batch.
//! Otherwise one whose turn is right after another's would always find nothing.
//!
//! A caller has no lease until [it pays](recent): its first calls ask Redis.
//!
//! # What is held back
//!
//! Tokens in a slice cannot be spent by other nodes. Each holds at most half the burst
//! divided by the number of nodes, and less than one call costs, so all together hold about
//! half. Quotas of which that would be less than eight tokens are not leased, nor are kinds
//! other than token buckets and meters: each of their calls asks Redis.

mod bucket;
mod bucket_word;
mod core;
mod held;
mod lease;
mod leases;
mod reaper;
mod recent;
mod single_flight;
mod size;
mod slice;
mod source;
mod table;
mod take;
#[cfg(test)]
mod tests;

pub(crate) use self::lease::Spent;
pub(crate) use self::leases::Leases;
pub(crate) use self::source::{LeaseSource, Named, Taken};
pub(crate) use self::table::LeaseId;
