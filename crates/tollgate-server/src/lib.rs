#![doc = include_str!("../README.md")]

mod app;
mod commands;
pub mod http;
pub mod resp;
mod secret;
pub mod snapshot;

pub use self::app::{Access, App, Phase, Readiness};
pub use self::commands::run;
pub use self::secret::Secret;
