//! Tests of the proxy that need no server around it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agreement;
mod framing;
