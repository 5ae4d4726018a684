//! Rate limits that many machines share through Redis or Valkey.

pub mod engine;
mod lease;
mod name;
mod sighting;
mod state;

pub use self::name::Name;
pub use self::state::{State, Terms};
