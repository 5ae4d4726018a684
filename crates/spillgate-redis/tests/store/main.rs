//! The store, over Redis in memory, and over real ones.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod alike;
mod all_or_nothing;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod denials;
mod deposits;
mod descriptors;
mod fake;
mod leased;
mod nodes;
mod outage;
mod overload;
mod overrides;
mod room;
mod settle;
mod terms;
mod throttle;
mod tiers;
