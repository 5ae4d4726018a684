//! What a server holds and how it bears up: thousands of idle clients, floods of keys,
//! clients that do not read, and garbage.
//!
//! `scripts/soak` floods for longer, as docs/sizing.md says.

mod flood;
mod garbage;
mod idle;
mod memory;
mod slow;

/// A limit that no test here runs out of by chance, and ports that are free.
const POLICY: &str = "
    [server]
    http = '127.0.0.1:0'
    resp = '127.0.0.1:0'
    throttle-capacity = 100_000

    [[limit]]
    name = 'api'
    per = 'header:x-key'
    quota = '1000/day burst 1000'
    capacity = 100_000
";
