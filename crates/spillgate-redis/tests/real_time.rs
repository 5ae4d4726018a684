//! Nodes and processes that share limits while time goes on: under load, and while servers fail.
//!
//! Each of these tests needs the whole machine for itself, as far as there is one.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, unused_imports, reason = "`main` needs the rest")]
mod common;
mod faults;
mod fleet;

use tokio::sync::Mutex;

/// Whose turn it is to have the machine.
static TURN: Mutex<()> = Mutex::const_new(());

/// True if nothing else has the machine, so that times mean something.
fn is_quiet() -> bool {
    spillgate_testing::effort() > 1
}
