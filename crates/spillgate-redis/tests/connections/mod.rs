//! Connections to real servers, and what becomes of calls when they fail.

mod access;
mod asking;
mod checks;
mod cluster;
mod credentials;
mod deposits;
mod moving_slot;
mod news;
mod nodes;
mod outage;
mod sentinel;
mod stalls;
mod start;
mod tls;
mod votes;
