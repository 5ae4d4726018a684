#![doc = include_str!("../README.md")]

mod commands;
pub mod resp;
pub mod snapshot;

pub use self::commands::run;
