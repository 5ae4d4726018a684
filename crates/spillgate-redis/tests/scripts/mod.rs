//! The scripts, inside real servers, do what the library does.

mod alike;
mod case;
mod conformance;
mod edges;
mod edits;
mod kept;
mod permits;
mod runner;
mod small;
