//! The scripts, inside real servers, do what the library does.

mod alike;
mod case;
mod conformance;
mod edges;
mod kept;
mod runner;
mod small;
