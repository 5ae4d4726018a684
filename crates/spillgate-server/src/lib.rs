#![doc = include_str!("../README.md")]

mod app;
mod commands;
mod config;
mod connections;
pub mod envoy;
pub mod grpc;
pub mod http;
mod log;
mod proxy;
pub mod resp;
mod secret;
mod server;
pub mod snapshot;
mod store;
mod tls;
mod together;

pub use self::app::{Access, App, Phase, Readiness};
pub use self::commands::run;
pub use self::connections::Connections;
pub use self::secret::Secret;
pub use self::store::{AnyLimits, AnyStore, SharedStore};
