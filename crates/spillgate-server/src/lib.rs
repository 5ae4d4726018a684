#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod app;
mod commands;
pub mod envoy;
mod lifecycle;
mod live;
mod log;
pub mod protocol;
mod secret;
mod settings;
pub mod snapshot;
mod store;

pub use self::app::{Access, App, Phase, Readiness};
pub use self::commands::run;
pub use self::secret::Secret;
pub use self::store::{AnyLimits, AnyStore, SharedStore};
