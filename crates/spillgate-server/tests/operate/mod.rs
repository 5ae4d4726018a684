//! The `spillgate` program itself: how it is told what to do, how it changes while it
//! serves, what it bears, how it ends, and what the next one knows.

mod adaptive;
pub(crate) mod clients;
mod cluster;
mod commands;
mod crowd;
mod deploy;
mod diff;
mod documents;
mod drain;
mod emptied;
mod errors;
mod expiry;
mod hurry;
mod kill;
mod log;
mod pages;
mod reload;
mod replay;
mod schema;
mod settings;
mod snapshots;
mod soak;
mod tls;
mod tokens;
mod top;
