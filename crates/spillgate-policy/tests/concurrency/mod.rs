//! Limits on how much is in progress at once.

mod acquired;
mod holds;
mod model;
mod problems;
mod reload;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use spillgate_policy::store::Usage;

use crate::common::TestGate;

/// The usage of a limit.
fn usage(gate: &TestGate, limit: &str) -> Usage {
    let usage = gate.usage().into_iter().find(|(name, _)| name == limit);
    usage.unwrap().1
}

/// How many permits of a limit are held.
fn held(gate: &TestGate, limit: &str) -> u64 {
    usage(gate, limit).held
}

/// Runs a future of a store in memory, which is ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    let output = if let Poll::Ready(output) = polled { Some(output) } else { None };
    output.unwrap()
}
