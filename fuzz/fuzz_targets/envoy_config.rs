//! Any text is a file of envoyproxy/ratelimit, from which a policy can be built, or is refused
//! with problems that lie inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spillgate::AlgorithmKind;
use spillgate_policy::Policy;
use spillgate_server::envoy::parse;

fuzz_target!(|text: &str| {
    // What is missing at the end may be told of the line after the last.
    let lines = text.split(['\n', '\r']).count() + 1;
    for algorithm in [AlgorithmKind::FixedWindow, AlgorithmKind::TokenBucket] {
        match parse("file", text, algorithm) {
            Ok(domain) => {
                let built = Policy::builder().domain(domain).build();
                assert!(built.is_ok(), "{:?}", built.err());
            }
            Err(problems) => {
                assert!(!problems.lines().is_empty());
                for problem in problems.lines() {
                    let line = problem.split(':').nth(1).and_then(|line| line.parse().ok());
                    assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{problem}");
                }
            }
        }
    }
});
