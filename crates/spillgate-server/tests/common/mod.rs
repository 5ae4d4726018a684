//! Programs that tests start, and end.

pub(crate) mod goaway;
pub(crate) mod program;
pub(crate) mod redis;
pub(crate) mod server;
