use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::super::clients::{Http, Resp};
use super::POLICY;
use crate::common::server::Home;

/// More than the server has threads.
const CLIENTS: usize = 16;

/// What a client may make the server hold that sends and does not read: a backlog of
/// replies, in a buffer that may be twice as large.
const EACH: u64 = 2 * 1024 * 1024;

/// More than the system holds of what is sent and of the replies to it, on both sides.
const TOO_MUCH: usize = 64 * 1024 * 1024;

/// Sends a pipeline again and again until the server takes no more. Reads nothing.
fn stuff(address: SocketAddr, pipeline: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    // Little of what the server sends waits in the system, and so it is soon that it cannot send.
    set_socket_recv_buffer_size(&client, 16 * 1024).unwrap();
    for _ in 0..TOO_MUCH / pipeline.len() {
        if let Err(error) = client.write_all(pipeline.as_bytes()) {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
            return client;
        }
    }
    panic!("the server reads on although nobody reads its replies to {:?}", &pipeline[..20]);
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody_and_little_memory() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let check = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: 29\r\n\r\n{\"limit\":\"api\",\"key\":\"slow2\"}";
    let health = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let before = server.memory("RssAnon:");
    let kinds = [
        (server.resp, "CL.THROTTLE slow 15 30 60\r\n"),
        (server.resp, "COMMAND DOCS\r\n"),
        (server.http, check),
        (server.http, health),
    ];
    let clients: Vec<TcpStream> = std::thread::scope(|scope| {
        let spawn = |number: usize| {
            let (address, request) = kinds[number % kinds.len()];
            scope.spawn(move || stuff(address, &request.repeat(100)))
        };
        let stuffers: Vec<_> = (0..CLIENTS).map(spawn).collect();
        stuffers.into_iter().map(|stuffer| stuffer.join().unwrap()).collect()
    });
    let each = server.memory("RssAnon:").saturating_sub(before) / CLIENTS as u64;
    assert!(each <= EACH, "{each} bytes for each client that does not read");
    // All of them are still there, and everyone else is served.
    let five = Resp::connect(server.resp).unwrap().ask("CL.THROTTLE quick 15 30 60").unwrap();
    assert_eq!(five, [0, 16, 15, -1, 2]);
    assert!(Http::connect(server.http).unwrap().check("api", "quick").unwrap());
    drop(clients);
    server.stop();
}
