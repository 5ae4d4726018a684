//! Permits of concurrency limits that a node holds in Redis, and hands out at the speed of memory.
//!
//! # Why all nodes together never hand out too many
//!
//! For each caller a node holds a *slice* of its permits in Redis: a number with an expiry. All
//! slices together, and what programs have acquired, are at most the limit: one script adds them up.
//! A node hands permits out while all that are in flight there fit its slice, and only until the
//! slice may expire: Redis counts the time to live from when it runs a call, the node from when it
//! sent it, and takes its own clock to be slow ([drift](slice::lasts)).
//!
//! - Calls say how many permits the node wants to have, not how many more, so that a call whose reply
//!   was lost can be made again. They are numbered: one that was overtaken by the next changes nothing.
//! - To give some back, a node first stops to hand them out, then sends the call. What is in flight is
//!   not given back.
//! - A node that cannot renew its slice stops handing out before it expires. Whoever still holds a
//!   permit then is counted as *expired*, since others may get the same permits. When Redis answers
//!   again, the node takes as many of those as are free, and hands out no more until all in flight fit.
//! - A node that dies renews nothing: its permits are free after the time to live.
//! - What a node hands out during an outage, by its share, is in flight as well, and is covered with the
//!   next call.
//!
//! # What it costs
//!
//! The first call of a caller asks Redis. What is released stays in the slice for the next; the part of
//! a slice that was not needed for a quarter of a second goes back. A slice grows up to twice what
//! was needed lately, by at most half of what is free, divided by the nodes; so small limits are not
//! hoarded, and where a share is below eight permits, a slice keeps only what is in flight. Slices are
//! renewed after a third of the time to live. A denial is remembered for 50 ms.

mod core;
mod keeper;
mod limit;
mod slice;

pub(crate) use self::core::{HoldRequest, Holds, Taken};
pub(crate) use self::limit::{HeldLimit, HeldLimits, permits_of};
