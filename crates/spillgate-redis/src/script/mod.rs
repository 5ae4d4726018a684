//! What runs inside Redis: the Lua scripts, and the encoding of their keys, arguments and replies. All
//! numbers are unsigned and big endian. Each script documents its arguments and its reply at its top.

mod arguments;
mod deposit;
mod edits;
mod keys;
mod permits;
mod reply;
mod state;

use std::sync::LazyLock;

use redis::{Cmd, Pipeline};

pub use self::arguments::{
    Argument, announce, encode_entry, exchange, millis, override_clock, prefixes,
};
pub(crate) use self::deposit::{Deposit, Paid};
pub use self::edits::{edits, publish};
pub use self::keys::{Key, Keys};
pub use self::permits::{permit_reply, permits, swap, swapped};
pub use self::reply::{alive, born, reply};

/// Decides: the only script that implements the algorithms.
///
/// The fast path, a spend from a bucket, stands at the end. Everything else is inside a function, so
/// that its closures are created only when needed.
pub const RUN: &str = concat!(
    include_str!("run/contract.lua"),
    "local function others()\n",
    include_str!("run/numbers.lua"),
    include_str!("run/bucket.lua"),
    include_str!("run/packing.lua"),
    include_str!("run/interval_bucket.lua"),
    include_str!("run/fixed_window.lua"),
    include_str!("run/sliding_window.lua"),
    include_str!("run/dispatch.lua"),
    "end\n",
    include_str!("run/decide.lua"),
);

/// Replaces a state if it is still the expected one (compare and set).
pub const EXCHANGE: &str = include_str!("exchange.lua");

/// Counts the nodes that are alive.
pub const ANNOUNCE: &str = include_str!("announce.lua");

/// Counts the prefixes in use on a server.
pub const PREFIXES: &str = include_str!("prefixes.lua");

/// Records when a limit was first used.
pub const BORN: &str = include_str!("born.lua");

/// Stores edits made at run time.
pub const PUBLISH: &str =
    concat!(include_str!("edits/prepare.lua"), include_str!("edits/publish.lua"));

/// Returns the edits since a version.
pub const EDITS_SINCE: &str =
    concat!(include_str!("edits/prepare.lua"), include_str!("edits/since.lua"));

/// Announces a node, returns the edits since a version, and counts the prefixes in use.
pub const PULSE: &str = concat!(
    "local function announce(KEYS, ARGV)\n",
    include_str!("announce.lua"),
    "end\nlocal function prefixes(KEYS, ARGV)\n",
    include_str!("prefixes.lua"),
    "end\nlocal function edits_since(KEYS, ARGV)\n",
    include_str!("edits/prepare.lua"),
    include_str!("edits/since.lua"),
    "end\n",
    include_str!("pulse.lua"),
);

/// Holds, renews, releases and revokes permits.
pub const PERMITS: &str = include_str!("permits.lua");

/// Replaces a small value if it is still the expected one.
pub const SWAP: &str = include_str!("swap.lua");

/// Checks that scripts may run and write.
pub const PROBE: &str = include_str!("probe.lua");

/// A loaded script, called by its SHA-1 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Run,
    Exchange,
    Announce,
    Prefixes,
    Born,
    Probe,
    Publish,
    EditsSince,
    Pulse,
    Permits,
    Swap,
}

/// In the order of the variants above.
const CODES: [&str; 11] =
    [RUN, EXCHANGE, ANNOUNCE, PREFIXES, BORN, PROBE, PUBLISH, EDITS_SINCE, PULSE, PERMITS, SWAP];

static DIGESTS: LazyLock<[String; CODES.len()]> =
    LazyLock::new(|| CODES.map(|code| redis::Script::new(code).get_hash().to_owned()));

impl Script {
    /// An `EVALSHA` command; append the keys, then the arguments.
    pub(crate) fn call(self, keys: usize) -> Cmd {
        let mut call = Cmd::new();
        call.arg("EVALSHA").arg(&DIGESTS[self as usize]).arg(keys);
        call
    }

    /// The same with one key and its arguments.
    pub(crate) fn call_about(self, key: &[u8], arguments: &[Argument]) -> Cmd {
        let mut call = self.call(1);
        call.arg(key);
        for argument in arguments {
            call.arg(argument.as_slice());
        }
        call
    }
}

/// `SCRIPT LOAD` of every script.
pub(crate) fn loading() -> Pipeline {
    let mut calls = Pipeline::new();
    for code in CODES {
        calls.cmd("SCRIPT").arg("LOAD").arg(code);
    }
    calls
}
