//! Any edit, state of strikes and name of a permit is understood or refused; what a gate has taken
//! it hands out again, and takes again the same.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use spillgate::{Clock, Timestamp};
use spillgate_policy::store::{BanState, Edit, PermitId};
use spillgate_policy::{Gate, Policy, parse_duration, rfc3339};

const POLICY: &str = "[[limit]]\nname = 'a'\nquota = '1/s burst 5'\nban = { strikes = 2 }\n\
    [[limit]]\nname = 'c'\nconcurrent = 3\nper = 'user'\n";

static GATE: LazyLock<Gate> = LazyLock::new(|| {
    let policy = Policy::from_toml(POLICY).expect("a policy");
    Gate::new(policy).expect("a small table")
});

fuzz_target!(|input: (&str, Option<&str>, Option<u64>, u8)| {
    let (key, value, until, kind) = input;
    // A fuzzer seldom writes JSON by itself.
    let key = match kind % 5 {
        0 => key.to_owned(),
        1 => format!("[\"list\",\"block\",{key:?}]"),
        2 => format!("[\"override\",\"a\",{key:?}]"),
        3 => format!("[\"override\",\"c\",{key:?}]"),
        _ => format!("[\"ban\",{key:?}]"),
    };
    let now = GATE.store().clock().now();
    let until = until.map(|nanos| now + std::time::Duration::from_nanos(nanos));
    let edit = Edit::new(key.clone(), value.map(str::to_owned), until);
    let _ = GATE.apply(&edit);
    let again = GATE.edits();
    GATE.apply_all(&again).expect("what a gate hands out it takes");
    let _ = GATE.apply(&Edit::new(key.clone(), None, None));

    if let Ok(id) = key.parse::<PermitId>() {
        assert_eq!(id.to_string(), key.to_ascii_lowercase());
    }
    if let Ok(moment) = rfc3339::parse(&key) {
        let second = Timestamp::from_secs(moment.as_nanos() / 1_000_000_000);
        assert_eq!(rfc3339::parse(&rfc3339::format(moment)), Ok(second));
    }
    let _ = parse_duration(&key);
    if let Some(state) = BanState::from_bytes(key.as_bytes()) {
        assert_eq!(BanState::from_bytes(&state.to_bytes()), Some(state));
    }
});
