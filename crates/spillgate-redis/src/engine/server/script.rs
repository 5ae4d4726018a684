use std::sync::LazyLock;

use redis::{Cmd, Pipeline};

use crate::engine::scripts::{ANNOUNCE, BORN, EXCHANGE, PREFIXES, PROBE, RUN};
use crate::engine::wire::Argument;

/// What servers are asked to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// Decides.
    Run,
    /// Puts one state in place of another.
    Exchange,
    /// Counts the nodes that are alive.
    Announce,
    /// Counts the prefixes that nodes have.
    Prefixes,
    /// Remembers when something was first asked for.
    Born,
    /// Tries whether the others can be run.
    Probe,
}

/// All of them, in the order above.
const CODES: [&str; 6] = [RUN, EXCHANGE, ANNOUNCE, PREFIXES, BORN, PROBE];

/// What servers know them by.
static DIGESTS: LazyLock<[String; CODES.len()]> =
    LazyLock::new(|| CODES.map(|code| redis::Script::new(code).get_hash().to_owned()));

impl Script {
    /// A call of this script, about so many keys. They follow, then its arguments.
    pub(super) fn call(self, keys: usize) -> Cmd {
        let mut call = Cmd::new();
        call.arg("EVALSHA").arg(&DIGESTS[self as usize]).arg(keys);
        call
    }

    /// A call about one key.
    pub(super) fn call_about(self, key: &[u8], arguments: &[Argument]) -> Cmd {
        let mut call = self.call(1);
        call.arg(key);
        for argument in arguments {
            call.arg(argument.as_slice());
        }
        call
    }
}

/// The calls that make a server know all scripts.
pub(super) fn loading() -> Pipeline {
    let mut calls = Pipeline::new();
    for code in CODES {
        calls.cmd("SCRIPT").arg("LOAD").arg(code);
    }
    calls
}
