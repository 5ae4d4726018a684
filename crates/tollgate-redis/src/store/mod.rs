//! The store: limits that many nodes share.

mod cache;
mod denials;
mod share;
mod terms;
