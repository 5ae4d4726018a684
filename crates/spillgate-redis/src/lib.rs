#![doc = include_str!("../README.md")]

mod counted;
mod counter;
pub mod engine;
mod fingerprint;
mod flow;
mod lease;
mod name;
mod sighting;
mod state;
mod store;

pub use self::fingerprint::Fingerprint;
pub use self::flow::inherit_client;
pub use self::lease::LeaseStats;
pub use self::name::{Name, Secret};
pub use self::state::{Base, State, Terms};
pub use self::store::{Agreement, RedisLimits, RedisStore, Settings, Share, Stats};
