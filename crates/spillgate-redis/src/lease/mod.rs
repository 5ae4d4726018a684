//! Slices of a bucket that a node takes ahead of use and spends at the speed of memory.
//!
//! # Why the fleet never admits too much
//!
//! Picture a bucket as a time line divided into slots, each as long as the refill time of one
//! token, `T`. The bucket's word is the end of the slots that are given away: spending `c` tokens
//! at time `t` takes the slots from `max(word, t)` on, `c·T` long, and passes if they end by `t +
//! burst·T`. No slot is given away twice, since the word only moves on.
//!
//! A slice is a run of slots given to a node. The node may spend each once, but only in time: **at
//! `t` it spends slots that begin at `t` or later**. Slots that pass unspent are lost: a slice
//! melts at the pace at which the bucket refills.
//!
//! So a token spent at `t`, out of a slice or not, is a slot between `t` and `t + burst·T`. What is
//! spent between `a` and `b` are distinct slots between `a` and `b + burst·T`, each `T` long: at
//! most `burst + (b - a)/T`, the guarantee of a single bucket. It needs no clock but that of Redis,
//! of which a node knows [the latest possible time](crate::clock_sample::ClockSample).
//!
//! - A node that dies takes its slices with it, and others find those slots passed.
//! - An idle slice is [given back](#giving-back). It is dropped before the call is sent: if Redis does
//!   not answer, it is lost.
//! - A call paid out of a slice, or by Redis right before the slice, has spent exactly the slots
//!   that end at the word of its decision. If those precede the first unspent slot of a slice, a
//!   refund extends the slice: nobody else has those slots, and they still pass when they begin.
//! - A refund in Redis moves the word back. If the slots it passes over are spent, it is as if they
//!   had been paid with the refunded ones, which had not begun. If they are held in a slice, slots
//!   are given away twice, but no more than were refunded: at most `burst + (b - a)/T` plus the
//!   refunds between `a - burst·T` and `b`. So a caller whose reservations other nodes may settle
//!   makes as many calls in Redis as there are reservations: then the slots passed over are spent,
//!   and nothing is lost.
//! - Slots of different tiers differ in length. A caller in another tier begins a new lease, and
//!   what it held is given back or lost.
//!
//! # Giving back
//!
//! If the word is still the end of the slice, it is moved back to the first unspent slot. Otherwise
//! later slots belong to others, and were mostly spent: the word is moved back by the length of the
//! unspent slots, and the tokens behind it are paid with those instead. That is no harm to what was
//! spent, since it was spent before these slots begin. But others may still hold some of it, and do
//! not know that its slots begin earlier now. So
//!
//! - a slice is spent [within a second](slice::LIVES) of its take, or not at all. Take that as the
//!   slots' *bound*: each token that is held is paid with slots that begin no earlier than its own
//!   slot or the end of that second, whichever is first;
//! - only what lies a second ahead of Redis's time is given back, counted from the bound of the first
//!   token. What others hold is spent before, so their bounds hold, however often slots are exchanged;
//! - the word is compared, so nothing is taken or spent between look and exchange, however long that
//!   takes; and it is moved by a little less, to where no slice ends: a slice whose end is the word
//!   has its own slots.
//!
//! So a slice of a drained bucket comes back but for what was refilled since it was taken. The tokens
//! in between are kept until the second is over. What is then neither spent nor given back is
//! counted, except slots that pass in order: a full bucket could not hold them.
//!
//! # What it costs
//!
//! A take brings the demand of a tenth of a second: about ten takes per second, while the bucket
//! has enough. When a take leaves less than a batch, [no other is sent](bucket_word) until a batch
//! has refilled, and calls are denied with that retry time. A batch is what refills in a tenth of a
//! second, or a node's share if that is less. So a take either comes a tenth of a second after the
//! one before or brings a share, and at most `2·nodes·rate/burst` shares refill per second. With a
//! few more while a full bucket is drained, `2·nodes` at most, and with what is given back, that is
//! below 25 per second where a share lasts. Where it would be more than a hundred, calls ask Redis
//! on their own.
//!
//! Nodes add jitter of up to half a batch: otherwise one that always comes right after another
//! would find nothing.
//!
//! A caller gets no lease until [it pays](recent): its first calls ask Redis.
//!
//! # What is held back
//!
//! Tokens in a slice cannot be spent by other nodes. Each node holds at most half the burst divided
//! by the number of nodes, plus less than the cost of one call, so all together hold about half.
//! Quotas for which that is less than eight tokens are not leased, nor are algorithms other than
//! token buckets and meters: their calls ask Redis. So do those of a caller whose quota has moved,
//! until what it had spent has run off: a slice could not be given back to several quotas.

mod bucket;
mod bucket_word;
mod caller_lease;
mod core;
mod held;
mod leases;
mod reaper;
mod recent;
mod single_flight;
mod size;
mod slice;
mod slice_return;
mod source;
mod table;
mod take;
#[cfg(test)]
mod tests;

pub(crate) use self::caller_lease::Spent;
pub(crate) use self::leases::Leases;
pub(crate) use self::source::{LeaseSource, Named, Taken};
pub(crate) use self::table::LeaseId;
