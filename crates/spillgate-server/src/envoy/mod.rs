//! Configuration files of [envoyproxy/ratelimit], read as they are.
//!
//! Such a file names a domain and a tree of descriptors. Every problem is reported with its line,
//! unknown keys included. `docs/envoy.md` shows what is read.
//!
//! [envoyproxy/ratelimit]: https://github.com/envoyproxy/ratelimit

mod descriptor;
mod folder;
mod metadata;
mod problems;
mod scalar;
mod table;
#[cfg(test)]
mod tests;
mod unit;
mod yaml;

pub use self::descriptor::parse;
pub(crate) use self::descriptor::quota;
pub(crate) use self::folder::{Folder, files, is_yaml, load};
pub use self::problems::Problems;
pub(crate) use self::unit::{json_names, lasting, numbered};
