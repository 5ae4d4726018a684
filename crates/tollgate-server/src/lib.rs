#![doc = include_str!("../README.md")]

mod commands;
pub mod resp;

pub use self::commands::run;
