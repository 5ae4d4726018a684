//! The algorithms as pure functions, against the reference model and their word.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod carry_over;
mod conformance;
mod garbage;
mod invariants;
mod layout;
mod long_run;
mod nominal;
mod situation;
mod stated;
mod words;
