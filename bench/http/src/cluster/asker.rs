//! A client of the Redis protocol that costs next to nothing, and may send any bytes, as
//! redis-benchmark may not.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use crate::Result;

/// How many connections it has.
const CONNECTIONS: usize = 50;

/// Makes calls for some time, so many under way on each connection, and tells how many were
/// answered in a second. `call` writes the call of a number.
pub fn ask(
    port: u16,
    pipeline: usize,
    time: Duration,
    call: impl Fn(u64, &mut Vec<u8>),
) -> Result<f64> {
    let connect = |_| {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(socket)
    };
    let mut sockets = (0..CONNECTIONS).map(connect).collect::<Result<Vec<TcpStream>>>()?;
    let (mut calls, mut output, mut input) = (0, Vec::new(), Vec::new());
    let mut send = |socket: &mut TcpStream| -> Result<()> {
        output.clear();
        for _ in 0..pipeline {
            // Spread over all numbers, and always the same.
            call(calls * 7919 % 100_000, &mut output);
            calls += 1;
        }
        Ok(socket.write_all(&output)?)
    };
    for socket in &mut sockets {
        send(socket)?;
    }
    let (begin, mut answered) = (Instant::now(), 0);
    while begin.elapsed() < time {
        for socket in &mut sockets {
            receive(socket, pipeline, &mut input)?;
            answered += pipeline;
            send(socket)?;
        }
    }
    Ok(answered as f64 / begin.elapsed().as_secs_f64())
}

/// Reads so many replies.
fn receive(socket: &mut TcpStream, replies: usize, input: &mut Vec<u8>) -> Result<()> {
    input.clear();
    let (mut at, mut left, mut chunk) = (0, replies, [0; 16 * 1024]);
    while left > 0 {
        let read = socket.read(&mut chunk)?;
        if read == 0 {
            return Err("the server has hung up".into());
        }
        input.extend_from_slice(&chunk[..read]);
        while left > 0
            && let Some(end) = reply(input, at)?
        {
            (at, left) = (end, left - 1);
        }
    }
    Ok(())
}

/// Where a reply ends; `None` if it is not whole.
fn reply(input: &[u8], at: usize) -> Result<Option<usize>> {
    let Some(line) = input[at..].windows(2).position(|end| end == b"\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&input[at..at + line])?;
    let next = at + line + 2;
    let (kind, number) = text.split_at(text.len().min(1));
    match kind {
        "$" => Ok(Some(next + number.parse::<usize>()? + 2).filter(|end| *end <= input.len())),
        ":" | "+" => Ok(Some(next)),
        "*" => {
            let mut end = next;
            for _ in 0..number.parse::<usize>()? {
                match reply(input, end)? {
                    Some(next) => end = next,
                    None => return Ok(None),
                }
            }
            Ok(Some(end))
        }
        _ => Err(format!("an answer is {text}").into()),
    }
}

/// Writes a command.
pub fn write(output: &mut Vec<u8>, arguments: &[&[u8]]) {
    output.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
    for argument in arguments {
        output.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        output.extend_from_slice(argument);
        output.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_found_once_they_are_whole() {
        let text = b"*2\r\n:1\r\n$4\r\n\r\n\r\n\r\n+OK\r\n";
        assert_eq!(reply(text, 0).unwrap(), Some(18));
        assert_eq!(reply(text, 18).unwrap(), Some(23));
        assert!((0..18).all(|end| reply(&text[..end], 0).unwrap().is_none()));
        assert!(reply(b"-ERR no\r\n", 0).is_err());
    }
}
