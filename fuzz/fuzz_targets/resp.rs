//! Any bytes are requests or an error, the same however they arrive, and every request
//! lies within the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spillgate_server::protocol::resp::codec::{Decoder, Limits, ProtocolError};

/// The requests of a stream that arrives `step` bytes at a time.
fn requests(stream: &[u8], step: usize) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let limits = Limits { arguments: 8, bulk: 64, request: 256, inline: 128, ..Limits::default() };
    let (mut decoder, mut requests, mut used, mut end) = (Decoder::default(), Vec::new(), 0, 0);
    while end < stream.len() {
        end = stream.len().min(end + step);
        loop {
            match decoder.decode(&stream[used..end], &limits) {
                Ok(Some(request)) => {
                    requests.push(request.args.iter().map(<[u8]>::to_vec).collect());
                    used += request.length;
                }
                Ok(None) => break,
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}

fuzz_target!(|stream: &[u8]| {
    let whole = requests(stream, stream.len().max(1));
    assert_eq!(requests(stream, 1), whole);
    assert_eq!(requests(stream, 7), whole);
});
