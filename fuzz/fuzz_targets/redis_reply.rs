//! Any bytes are the reply of Redis or an error, and a state that is read is written and
//! read again the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spillgate_redis::State;
use spillgate_redis::backend::Found;
use spillgate_redis::script;

fuzz_target!(|input: (u8, &[u8])| {
    let (entries, bytes) = input;
    let entries = usize::from(entries % 5);
    if let Ok(reply) = script::reply(bytes, entries) {
        assert_eq!(reply.answers.len(), entries);
        for answer in &reply.answers {
            if let Found::Other(state) = answer {
                assert_eq!(State::from_bytes(&state.to_bytes()), Ok(state.clone()));
            }
        }
    }
    let _ = State::from_bytes(bytes);
    let _ = script::born(bytes);
    let _ = script::permit_reply(bytes);
    let _ = script::swapped(bytes);
    let _ = script::edits(bytes);
    let _ = script::alive(bytes, entries > 0);
    if let Ok(Some((_, length))) = spillgate_redis::client::parse_reply(bytes) {
        assert!(length <= bytes.len());
    }
});
