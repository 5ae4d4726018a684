//! Any text is a policy, or is refused with problems that lie inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_policy::Policy;

fuzz_target!(|text: &str| {
    let Err(error) = Policy::from_toml(text) else { return };
    assert!(!error.problems().is_empty());
    let lines = text.split('\n').count();
    for place in error.problems().iter().filter_map(|problem| problem.place()) {
        assert!((1..=lines).contains(&place.line), "line {} of {lines}", place.line);
    }
});
