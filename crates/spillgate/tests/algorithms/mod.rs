//! The algorithms as pure functions, against the reference model and their word.

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
