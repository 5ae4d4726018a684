//! Bytes to requests and replies to bytes: no I/O, no clock.

mod args;
mod decoder;
mod error;
mod foreign;
mod inline;
mod limits;
#[cfg(test)]
mod tests;
mod writer;

pub use self::args::Args;
pub(super) use self::args::OwnedArgs;
pub use self::decoder::{Decoder, Request};
pub use self::error::ProtocolError;
pub use self::limits::Limits;
pub use self::writer::{Protocol, Writer};
