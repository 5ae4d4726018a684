//! Permits that requests hold until their responses have ended.

mod bodies;
mod headers;
mod sockets;

use crate::common::{TestGate, gate};

/// A gate that lets each address have `limit` requests in progress.
fn uploads(limit: u32) -> TestGate {
    gate(&format!("[[limit]]\nname = \"uploads\"\nper = \"ip\"\nconcurrent = {limit}")).0
}

/// How many permits are held.
fn held(gate: &TestGate) -> u64 {
    gate.usage()[0].1.held
}
