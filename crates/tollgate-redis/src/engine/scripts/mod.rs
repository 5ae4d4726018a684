//! What runs inside an engine. Each script says at its top what it takes and answers.

/// Decides: the only script that knows the algorithms.
pub const RUN: &str = concat!(
    include_str!("run/contract.lua"),
    include_str!("run/numbers.lua"),
    include_str!("run/bucket.lua"),
    include_str!("run/packing.lua"),
    include_str!("run/interval_bucket.lua"),
    include_str!("run/fixed_window.lua"),
    include_str!("run/sliding_window.lua"),
    include_str!("run/decide.lua"),
);

/// Puts one state in place of another.
pub const EXCHANGE: &str = include_str!("exchange.lua");

/// Counts the nodes that are alive.
pub const ANNOUNCE: &str = include_str!("announce.lua");

/// Remembers when something was first asked for.
pub const BORN: &str = include_str!("born.lua");
