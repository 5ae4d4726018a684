//! Any pattern is taken or refused; a path that equals a pattern without parameters
//! matches it, however it is spelt.
#![no_main]

use http::{HeaderMap, Method, Uri};
use libfuzzer_sys::fuzz_target;
use spillgate_policy::{Gate, Limit, Outcome, Policy, RequestView};

fuzz_target!(|input: (&str, &str)| {
    let (pattern, path) = input;
    let limit = Limit::new("l", "1/s").path(pattern).capacity(1);
    let Ok(policy) = Policy::builder().limit(limit).build() else { return };
    let gate = Gate::new(policy).expect("memory for one limit");
    let _ = meets(&gate, path);
    if !pattern.contains(['{', '}']) {
        assert!(meets(&gate, pattern), "{pattern:?}");
        assert!(meets(&gate, &format!("/.//{pattern}/x/..")), "{pattern:?}");
    }
});

fn meets(gate: &Gate, path: &str) -> bool {
    let (uri, headers) = (Uri::from_static("/"), HeaderMap::new());
    let request = RequestView::new(&Method::GET, &uri, &headers, None).with_path(path);
    let outcome = gate
        .try_decide(&request, |it| it.map(Outcome::take))
        .expect("ready at once")
        .expect("never fails");
    outcome.limits().next().is_some()
}
