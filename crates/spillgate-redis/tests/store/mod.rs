//! The store, over Redis in memory, and over real ones.

mod alike;
mod all_or_nothing;
mod call_quota;
mod conformance;
mod denials;
mod deposits;
mod descriptors;
mod dropped;
mod edits;
mod fake;
mod leased;
mod nodes;
mod outage;
mod overload;
mod overrides;
mod permits;
mod returning;
mod room;
mod settle;
mod strikes;
mod terms;
mod tiers;
