//! Whatever headers a proxy's client adds, it is let pass or refused with the status that the
//! proxy knows, and nobody but the client that the proxy names has anything spent.
#![no_main]

use std::future::pending;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use spillgate_policy::{Gate, Policy};
use spillgate_server::protocol::http::{HttpServer, serve};
use spillgate_server::{AnyStore, App};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};

const POLICY: &str =
    "[[limit]]\nname = 'a'\nmatch = { path = '/a' }\ncapacity = 10\nquota = 'burst 1000'";

/// What the proxy sets, and removes from what its client sent.
const OWN: [&str; 4] = ["x-original-uri", "x-original-method", "x-original-host", "x-real-ip"];

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

fuzz_target!(|headers: Vec<(Vec<u8>, Vec<u8>)>| {
    RUNTIME.block_on(async {
        let policy = Policy::from_toml(POLICY).expect("a policy");
        let gate = Arc::new(Gate::with_store(policy, AnyStore::default()).expect("a small table"));
        let http = HttpServer::new(Arc::new(App::new(Arc::clone(&gate), POLICY)));
        let mut request =
            "GET /auth?deny=403 HTTP/1.1\r\nhost: localhost\r\nx-original-uri: /a?b\r\n\
                           x-original-method: GET\r\nx-original-host: h\r\nx-real-ip: 192.0.2.1\r\n"
                .as_bytes()
                .to_vec();
        for (name, value) in &headers {
            // A proxy has read lines.
            let is_line = |text: &[u8]| !text.contains(&b'\n');
            let name = name.to_ascii_lowercase();
            let is_own = OWN.iter().any(|own| name.trim_ascii() == own.as_bytes());
            if is_line(&name) && is_line(value) && !is_own {
                request.extend([&name, b": ".as_slice(), value, b"\r\n"].concat());
            }
        }
        request.extend(b"\r\n");
        let (mut client, server) = duplex(1024 * 1024);
        client.write_all(&request).await.expect("there is room");
        client.shutdown().await.expect("it is open");
        let mut reply = Vec::new();
        let hear = client.read_to_end(&mut reply);
        let peer = "127.0.0.1:9".parse().ok();
        let (_, heard) = tokio::join!(serve(server, peer, &http, pending()), hear);
        heard.expect("the stream does not fail");
        let (request, reply) = (String::from_utf8_lossy(&request), String::from_utf8_lossy(&reply));
        let is_allowed = reply.starts_with("HTTP/1.1 200 OK");
        assert!(is_allowed || reply.starts_with("HTTP/1.1 403 "), "{request}{reply}");
        let left = gate.peek_limit("a", &["192.0.2.1"], 0).await.expect("it is there");
        let spent = 1000 - left.remaining();
        assert_eq!(spent, u64::from(is_allowed), "{request}{reply}");
        let callers = gate.usage()[0].1.callers;
        assert_eq!(callers, spent, "{request}{reply}");
    });
});
