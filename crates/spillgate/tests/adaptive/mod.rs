//! Adaptive limits, on a simulated service.

mod claims;
mod errors;
mod garbage;
mod load;
mod one_core;
mod priorities;
mod rates;
mod simulation;
