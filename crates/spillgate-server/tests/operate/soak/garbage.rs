use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::super::clients::{Http, Resp};
use super::POLICY;
use crate::common::server::Home;

const STREAMS: u64 = 200;

/// Bytes in no order, the same for the same seed: of all values, or of those that mean
/// something in one of the protocols.
fn garbage(seed: u64) -> Vec<u8> {
    const MEANT: &[u8] = b"*$:+-0123456789\r\n\"\\ PINGetHosTP/1.{}\x16\x03\xff\0";
    // Knuth's generator, of which the upper bits are good.
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let length = next() % 20_000;
    let byte = |_| match next() {
        number if seed.is_multiple_of(2) => (number % 256) as u8,
        number => MEANT[number % MEANT.len()],
    };
    (0..length).map(byte).collect()
}

/// Sends bytes and says that this is all, until the server has closed the connection.
fn send(address: SocketAddr, bytes: &[u8]) {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The server may hang up before it has read everything.
    let _ = client.write_all(bytes);
    let _ = client.shutdown(Shutdown::Write);
    match client.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
}

#[test]
fn garbage_on_any_port_ends_its_connection_and_no_other() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let mut resp = Resp::connect(server.resp).unwrap();
    let mut http = Http::connect(server.http).unwrap();
    for seed in 0..STREAMS {
        let bytes = garbage(seed);
        for address in [server.resp, server.http] {
            send(address, &bytes);
        }
        let [limited, _, remaining, ..] = resp.ask("CL.THROTTLE honest 999 1 86400").unwrap();
        assert_eq!((limited, remaining), (0, 999 - seed as i64));
        assert!(http.check("api", "honest").unwrap());
    }
    assert!(server.get("/healthz").starts_with("ok"));
    server.stop();
}
