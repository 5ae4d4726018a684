//! What runs inside an engine. Each script says at its top what it takes and answers.

/// Decides: the only script that knows the algorithms.
///
/// All that it takes to spend from a bucket stands at its end. The rest is inside a function,
/// so that nothing of it is made unless it is needed.
pub const RUN: &str = concat!(
    include_str!("run/contract.lua"),
    "local function others()\n",
    include_str!("run/numbers.lua"),
    include_str!("run/bucket.lua"),
    include_str!("run/packing.lua"),
    include_str!("run/interval_bucket.lua"),
    include_str!("run/fixed_window.lua"),
    include_str!("run/sliding_window.lua"),
    include_str!("run/others.lua"),
    "end\n",
    include_str!("run/decide.lua"),
);

/// Puts one state in place of another.
pub const EXCHANGE: &str = include_str!("exchange.lua");

/// Counts the nodes that are alive.
pub const ANNOUNCE: &str = include_str!("announce.lua");

/// Counts the prefixes that nodes have.
pub const PREFIXES: &str = include_str!("prefixes.lua");

/// Remembers when something was first asked for.
pub const BORN: &str = include_str!("born.lua");

/// Tries whether the others can be run.
pub const PROBE: &str = include_str!("probe.lua");
