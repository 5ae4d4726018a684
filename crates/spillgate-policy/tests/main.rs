//! Policies and gates, by what a program may call.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adaptive;
mod allocations;
mod bans;
mod changes;
mod common;
mod concurrency;
mod conformance;
mod counted_key;
mod descriptors;
mod expiry;
mod identity;
mod matching;
mod policy_file;
mod reload;
mod saved;
mod settle;
mod several;
mod spelling;
mod throttle;
mod tiers;
