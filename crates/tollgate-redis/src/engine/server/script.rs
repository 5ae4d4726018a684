use std::sync::LazyLock;

use redis::{Cmd, Pipeline, ToRedisArgs};

/// Writes something that goes away by itself, as `KEYS[1]`, to see whether that can be done.
const PROBE: &str = "redis.call('SET', KEYS[1], '', 'PX', 1000)\nreturn redis.call('TIME')";

/// What servers are asked to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// Shows that scripts can write.
    Probe,
}

/// All of them, in their order.
const CODES: [&str; 1] = [PROBE];

/// What servers know them by.
static DIGESTS: LazyLock<[String; CODES.len()]> =
    LazyLock::new(|| CODES.map(|code| redis::Script::new(code).get_hash().to_owned()));

/// The calls that make a server know all scripts.
pub(super) fn loading() -> Pipeline {
    let mut calls = Pipeline::new();
    for code in CODES {
        calls.cmd("SCRIPT").arg("LOAD").arg(code);
    }
    calls
}

impl Script {
    /// A call of this script about some keys. Its arguments follow.
    pub(super) fn call(self, keys: &[impl ToRedisArgs]) -> Cmd {
        let mut call = Cmd::new();
        call.arg("EVALSHA").arg(&DIGESTS[self as usize]).arg(keys.len()).arg(keys);
        call
    }
}
