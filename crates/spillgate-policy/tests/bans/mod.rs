//! Bans: when they begin, what they do, and when they end.

mod admin;
mod config;
mod flood;
mod gate;
mod rule;
