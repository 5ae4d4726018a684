//! The store, over an engine in memory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod all_or_nothing;
mod conformance;
mod denials;
mod engine;
mod leased;
mod outage;
mod overrides;
mod settle;
mod terms;
