//! Any bytes are the reply of an engine or an error, and a state that is read is written and
//! read again the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spillgate_redis::State;
use spillgate_redis::engine::{Found, wire};

fuzz_target!(|input: (u8, &[u8])| {
    let (entries, bytes) = input;
    let entries = usize::from(entries % 5);
    if let Ok(reply) = wire::reply(bytes, entries) {
        assert_eq!(reply.answers.len(), entries);
        for answer in &reply.answers {
            if let Found::Other(state) = answer {
                assert_eq!(State::from_bytes(&state.to_bytes()), Ok(*state));
            }
        }
    }
    let _ = State::from_bytes(bytes);
    let _ = wire::born(bytes);
    let _ = wire::alive(bytes, entries > 0);
    if let Ok(Some((_, length))) = wire::answer(bytes) {
        assert!(length <= bytes.len());
    }
});
