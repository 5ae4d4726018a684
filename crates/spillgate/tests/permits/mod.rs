//! Permits: what is in flight never exceeds the limit, and all of it comes back.

mod counting;
mod decisions;
#[cfg(feature = "tokio")]
mod model;
#[cfg(feature = "tokio")]
mod queue;
mod threads;
