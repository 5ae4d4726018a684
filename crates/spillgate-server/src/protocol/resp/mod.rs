//! The Redis protocol: `CL.THROTTLE` as in redis-cell, `SG.CHECK`, and what clients expect.
//!
//! | command | does |
//! |---|---|
//! | `CL.THROTTLE key max_burst count period [quantity]` | spends under a quota that comes with the call |
//! | `SG.CHECK limit key [cost]` | spends under a limit of the policy |
//! | `SG.CHECK limit PARTS n part … [cost]` | the same, for a limit per several parts, or none |
//! | `SG.ACQUIRE`, `SG.RENEW`, `SG.RELEASE` | hold permits of a concurrency limit |
//! | `SG.REPORT limit latency ending` | reports how calls ended, to an adaptive limit |
//! | `SG.STRIKE limit key` | reports an offence |
//! | `SG.BANS`, `SG.BAN`, `SG.LIFT` | list, set and lift bans; for operators |
//! | `PING`, `ECHO`, `HELLO`, `AUTH`, `CLIENT`, `SELECT`, `RESET`, `QUIT` | about the connection |
//! | `MULTI`, `EXEC`, `DISCARD` | several of these at once |
//! | `COMMAND`, `CONFIG GET`, `INFO` | about the server |
//!
//! An [`Endpoint`] holds what connections share, and [`serve`] speaks with one client.
//! The [`codec`] is pure.

mod bans;
mod budget;
mod check;
mod client;
pub mod codec;
mod command;
mod config;
mod connection;
mod docs;
mod endpoint;
mod error;
mod execute;
mod hello;
mod info;
mod key_args;
mod permits;
mod pipeline;
mod protocol;
mod read_ahead;
mod reply;
mod reports;
mod session;
mod stats;
#[cfg(test)]
mod tests;
mod throttle;
mod top;
mod transaction;
mod wire;

pub use self::connection::serve;
pub use self::endpoint::{Endpoint, Timeouts};
pub(crate) use self::protocol::{DEFAULT_PORT, RespProtocol};
pub use self::stats::{Counts, RespStats};
pub use crate::secret::Secret as Password;
