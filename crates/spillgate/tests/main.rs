//! The library, by what a program may call.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adaptive;
mod adaptive_limit;
mod algorithms;
mod allocations;
mod check_with;
mod churn;
mod clock;
mod concurrency;
mod conformance;
mod fork;
mod hasher;
mod heavy_hitters;
mod limiter;
mod moving;
mod override_expiry;
mod permits;
mod promise;
mod promise_on_threads;
mod quota_text;
#[cfg(feature = "serde")]
mod serde;
mod table;
#[cfg(feature = "tokio")]
mod until_ready;
