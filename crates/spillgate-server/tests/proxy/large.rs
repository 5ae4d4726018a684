//! A great deal each way.

use std::io::{Read, Write};
use std::net::TcpStream;

use spillgate_testing::effort;

use crate::proxy::setup::Proxy;
use crate::proxy::upstream::Upstream;
use crate::proxy::wire::Wire;

/// Far more than the proxy may hold; with more effort a gigabyte.
fn length() -> usize {
    if effort() > 1 { 1_000_000_000 } else { 250_000_000 }
}

/// What is sent: a block that is repeated. Its length divides no buffer, so that bytes which
/// are lost, doubled or exchanged are at a wrong place.
fn block() -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..1_000_003).map(|_| next()).collect()
}

fn send(mut socket: &TcpStream) {
    let block = block();
    let mut left = length();
    while left > 0 {
        let count = block.len().min(left);
        socket.write_all(&block[..count]).unwrap();
        left -= count;
    }
}

/// Reads it all, of which some has come already.
fn receive(mut socket: &TcpStream, ahead: &[u8]) {
    let block = block();
    let mut place = 0;
    let mut check = |mut bytes: &[u8]| {
        while !bytes.is_empty() {
            let expected = &block[place % block.len()..];
            let count = expected.len().min(bytes.len());
            assert!(bytes[..count] == expected[..count], "wrong at {place} to {}", place + count);
            place += count;
            bytes = &bytes[count..];
        }
        place
    };
    let mut buffer = vec![0; 256 * 1024];
    let length = length();
    let mut so_far = check(ahead);
    while so_far < length {
        let count = socket.read(&mut buffer).unwrap();
        assert!(count > 0, "it ended after {so_far} bytes");
        so_far = check(&buffer[..count]);
    }
    assert_eq!(so_far, length);
}

fn receive_on(wire: &mut Wire) {
    let ahead = wire.ahead();
    receive(wire.socket(), &ahead);
}

#[test]
fn large_bodies_are_uploaded_and_downloaded_in_flat_memory() {
    let length = length();
    let upstream = Upstream::playing(move |mut wire, _| {
        while let Some(head) = wire.head() {
            if head.start.starts_with("PUT") {
                receive_on(&mut wire);
                wire.send(crate::proxy::upstream::ok("all of it"));
            } else {
                wire.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"));
                send(wire.socket());
            }
        }
    });
    let proxy = Proxy::to(&upstream);
    let before = proxy.server.resident();
    let mut wire = proxy.connect();
    wire.send(format!("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n"));
    send(wire.socket());
    assert_eq!(wire.response("PUT").unwrap().text(), "all of it");
    wire.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(wire.head().unwrap().header("content-length"), Some(&*length.to_string()));
    receive_on(&mut wire);
    let grown = proxy.server.memory("VmHWM:") - before;
    assert!(grown < 32 << 20, "the proxy took {grown} bytes more");
}
