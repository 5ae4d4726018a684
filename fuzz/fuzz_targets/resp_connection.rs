//! Whatever a client sends, its connection ends in order: no panic, and nothing is left
//! open.
#![no_main]

use std::future::pending;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use spillgate::WhenFull;
use spillgate_enforce::Enforcer;
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};
use spillgate_server::protocol::resp::{Endpoint, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

static ENDPOINT: LazyLock<Endpoint<Memory>> = LazyLock::new(|| {
    let policy = Policy::builder().build().expect("a policy").with_throttle(100, WhenFull::Evict);
    Endpoint::new(Arc::new(Enforcer::new(Gate::new(policy).expect("a small table"))))
});

fuzz_target!(|stream: &[u8]| {
    RUNTIME.block_on(async {
        let (client, server) = duplex(4096);
        let (mut reading, mut writing) = split(client);
        let talk = async {
            // The server may hang up before all is sent.
            let _ = writing.write_all(stream).await;
            let _ = writing.shutdown().await;
        };
        let mut replies = Vec::new();
        let hear = reading.read_to_end(&mut replies);
        let (served, heard, ()) =
            tokio::join!(serve(server, None, &*ENDPOINT, pending()), hear, talk);
        served.expect("the stream does not fail");
        heard.expect("the stream does not fail");
    });
    assert_eq!(ENDPOINT.stats().counts().open, 0);
});
