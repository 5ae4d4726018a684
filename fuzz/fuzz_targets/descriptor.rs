//! Any call of descriptors is decided under any limits for them, as it is explained before, and one
//! that is denied spends nothing.
#![no_main]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use spillgate::ManualClock;
use spillgate_policy::store::Memory;
use spillgate_policy::{
    Answer, Descriptor, DescriptorOutcome, Descriptors, Gate, Limit, Policy, PolicyBuilder,
};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    limits: Vec<Vec<(&'a str, &'a str)>>,
    calls: Vec<Vec<Asked<'a>>>,
}

#[derive(Arbitrary, Debug)]
struct Asked<'a> {
    entries: Vec<(&'a str, &'a str)>,
    hits: u8,
    gives_back: bool,
    has_quota: bool,
}

fn limit((number, entries): (usize, &Vec<(&str, &str)>)) -> Limit {
    let limit = Limit::new(format!("l{number}"), "1/s burst 100").domain("edge").capacity(8);
    entries.iter().fold(limit, |limit, (key, value)| limit.descriptor(*key, *value))
}

/// What each limit of each descriptor has left.
fn left(outcome: &DescriptorOutcome<'_>) -> Vec<u64> {
    let limits = outcome.descriptors().flat_map(|state| state.limits());
    limits.map(|limit| limit.decision().remaining()).collect()
}

fuzz_target!(|input: Input<'_>| {
    let limits = input.limits.iter().take(8).enumerate().map(limit);
    let builder = limits.fold(Policy::builder().call_quotas(), PolicyBuilder::limit);
    let Ok(policy) = builder.build() else { return };
    let quota = "1/s burst 50".parse().unwrap();
    let gate = Gate::with_store(policy, Memory::new(ManualClock::default())).unwrap();
    for call in &input.calls {
        let descriptors: Vec<_> = call
            .iter()
            .map(|asked| Descriptor {
                entries: &asked.entries,
                hits: asked.hits.into(),
                gives_back: asked.gives_back,
                quota: asked.has_quota.then_some(quota),
            })
            .collect();
        let looks: Vec<_> = descriptors.iter().map(|one| Descriptor { hits: 0, ..*one }).collect();
        let decide = |asked: &[Descriptor<'_>]| {
            gate.try_decide(&Descriptors { domain: "edge", descriptors: asked }, |it| {
                it.map(DescriptorOutcome::take)
            })
        };
        let before = decide(&looks).unwrap().unwrap();
        let question = Descriptors { domain: "edge", descriptors: &descriptors };
        let explain = pin!(gate.explain_descriptors(&question));
        let Poll::Ready(explained) = explain.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("a store in memory answers at once");
        };
        let explained = explained.unwrap();
        assert!(!explained.to_string().is_empty());
        assert_eq!(left(&before), left(&decide(&looks).unwrap().unwrap()));
        let outcome = decide(&descriptors).unwrap().unwrap();
        // With more, what a call has spent may be evicted by the same call.
        if descriptors.len() <= 2 {
            assert_eq!(explained.answer == Answer::Allowed, outcome.is_allowed(), "{explained}");
        }
        assert_eq!(outcome.descriptors().len(), descriptors.len());
        if !outcome.is_allowed() {
            assert!(outcome.descriptors().any(|state| state.is_denied()));
            assert_eq!(left(&before), left(&decide(&looks).unwrap().unwrap()));
        }
    }
});
