//! Processes that spend what a few callers have, through one server.

mod bounds;
mod hammered;
mod moved;
mod order;
mod permits;
mod processes;
mod worker;
