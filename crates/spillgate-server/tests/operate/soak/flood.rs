//! Keys that nobody has seen before, one after the other.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;

use super::super::clients::Http;

/// How many keys are sent together.
const TOGETHER: usize = 1000;

/// Calls once for each key over the Redis protocol; tells how many calls passed.
pub(super) fn resp(address: SocketAddr, keys: Range<u64>) -> u64 {
    let socket = TcpStream::connect(address).unwrap();
    let mut replies = BufReader::with_capacity(64 * 1024, socket.try_clone().unwrap());
    let mut calls = String::new();
    let mut line = String::new();
    let mut passed = 0;
    for keys in together(keys) {
        calls.clear();
        let count = keys.end - keys.start;
        keys.for_each(|key| calls.push_str(&format!("CL.THROTTLE flood:{key} 15 30 60\r\n")));
        (&socket).write_all(calls.as_bytes()).unwrap();
        for number in 0..6 * count {
            line.clear();
            replies.read_line(&mut line).unwrap();
            match number % 6 {
                0 => assert_eq!(line, "*5\r\n"),
                1 => passed += u64::from(line == ":0\r\n"),
                _ => {}
            }
        }
    }
    passed
}

/// Checks once for each key over HTTP; tells how many checks passed.
pub(super) fn http(address: SocketAddr, keys: Range<u64>) -> u64 {
    let mut client = Http::connect(address).unwrap();
    let mut passed = 0;
    for keys in together(keys) {
        let check = |key| format!("{{\"limit\":\"api\",\"key\":\"flood:{key}\"}}");
        let checks: Vec<_> = keys.map(check).collect();
        let answer = client.post(&format!("{{\"batch\":[{}]}}", checks.join(","))).unwrap();
        passed += answer.matches("\"allowed\":true").count() as u64;
    }
    passed
}

fn together(keys: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = keys.end;
    keys.step_by(TOGETHER).map(move |start| start..end.min(start + TOGETHER as u64))
}
