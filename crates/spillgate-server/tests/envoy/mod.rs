//! gRPC: what a proxy asks, through a client of gRPC and through a real Envoy.

mod access;
mod answers;
mod client;
mod denials;
mod documentation;
mod drain;
mod files;
mod health;
mod limits;
mod proxy;
mod quota_mode;
mod reflection;
mod store;
mod units;
mod wire;
