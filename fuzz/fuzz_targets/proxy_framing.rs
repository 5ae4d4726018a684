//! hyper reads whatever the proxy's framing guard lets through as the guard does: the same number
//! of requests, with the same methods, targets and bodies.
#![no_main]

#[path = "../../crates/spillgate-proxy/tests/agreement.rs"]
mod agreement;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime"));

fuzz_target!(|stream: &[u8]| {
    // Longer streams take long byte by byte, and find nothing that short ones do not.
    if stream.len() <= 2048 {
        RUNTIME.block_on(agreement::assert_agreement(stream));
    }
});
