//! Whatever body asks a check, it is answered; and what is spent under a limit is what the
//! answers say.
#![no_main]

mod common;

use std::future::pending;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use spillgate_server::protocol::http::{HttpServer, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use self::common::{RUNTIME, app};

/// One limit for all, which is used up once.
const POLICY: &str = "[[limit]]\nname = 'a'\nper = 'global'\nquota = 'burst 100'";

async fn ask(http: &HttpServer, body: &[u8], headers: &str) -> String {
    let (mut client, server) = duplex(1024 * 1024);
    let length = body.len();
    let head = format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n"
    );
    client.write_all(head.as_bytes()).await.expect("there is room");
    client.write_all(body).await.expect("there is room");
    client.shutdown().await.expect("it is open");
    let mut reply = Vec::new();
    let hear = client.read_to_end(&mut reply);
    let (served, heard) = tokio::join!(serve(server, None, http, pending()), hear);
    served.expect("the stream does not fail");
    heard.expect("the stream does not fail");
    String::from_utf8(reply).expect("a response is text")
}

fuzz_target!(|input: (bool, Vec<u8>)| {
    let (unusual, body) = input;
    RUNTIME.block_on(async {
        let app = app(POLICY);
        let http = HttpServer::new(Arc::clone(&app));
        let headers = if unusual { "connection: close\r\n" } else { "" };
        let reply = ask(&http, &body, headers).await;
        let ok = reply.starts_with("HTTP/1.1 200 OK\r\n");
        assert!(ok || reply.starts_with("HTTP/1.1 4"), "{reply}");
        let spent =
            100 - app.gate().peek_limit("a", &[], 0).await.expect("it is there").remaining();
        if !reply.contains("\"allowed\":true") {
            assert_eq!(spent, 0, "{reply}");
        }
        // What is left is what the last answer that was allowed says.
        let told = reply.rsplit("{\"allowed\":true,").next().filter(|_| spent > 0);
        let told = told.and_then(|rest| rest.split("\"remaining\":").nth(1)?.split(',').next());
        if let Some(told) = told {
            assert_eq!(told, (100 - spent).to_string(), "{reply}");
        }
    });
});
