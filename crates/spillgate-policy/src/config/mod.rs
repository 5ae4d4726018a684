//! A policy as it is written: by a file or a builder, and compiled into one that is in force.

mod builder;
pub(crate) mod compile;
pub(crate) mod file;
pub(crate) mod spec;

pub use self::builder::PolicyBuilder;
pub(crate) use self::compile::{canonical_values, key_of};
