//! Quotas that come with a call.

use std::time::Duration;

use spillgate_policy::{Descriptor, DescriptorKind, DescriptorOutcome, Descriptors, Policy};

use super::{Entries, decide, left, quota};
use crate::common::{TestGate, gate, gate_of};

const POLICY: &str = r#"
[[limit]]
name = "address"
match = { domain = "edge", descriptor = { remote_address = "*" } }
quota = "1/min burst 5"
"#;

const ADDRESS: Entries<'_> = &[("remote_address", "192.0.2.7")];
const OTHER: Entries<'_> = &[("remote_address", "192.0.2.8")];

fn by<'a>(text: &str, entries: Entries<'a>, hits: u64) -> Descriptor<'a> {
    Descriptor { hits, quota: Some(quota(text)), ..Descriptor::new(entries) }
}

/// Whether a call passes, and what it has left.
fn spend(gate: &TestGate, descriptor: Descriptor<'_>) -> (bool, u64) {
    let outcome = decide(gate, &[descriptor]);
    let state = outcome.descriptors().next().unwrap();
    let limit = state.nearest().unwrap();
    assert!(limit.is_of_call());
    assert_eq!(limit.decision().limit(), descriptor.quota.unwrap().burst());
    (outcome.is_allowed(), limit.decision().remaining())
}

#[test]
fn a_quota_that_comes_with_a_call_takes_the_place_of_all_limits() {
    let (gate, clock) = gate(POLICY);
    assert_eq!(spend(&gate, by("1/min burst 2", ADDRESS, 1)), (true, 1));
    assert_eq!(spend(&gate, by("1/min burst 2", ADDRESS, 1)), (true, 0));
    assert_eq!(spend(&gate, by("1/min burst 2", ADDRESS, 1)), (false, 0));
    assert_eq!(spend(&gate, by("1/min burst 2", OTHER, 1)), (true, 1), "counted apart");
    assert_eq!(left(&gate, ADDRESS), 5, "the limit has not counted");
    clock.advance(Duration::from_secs(60));
    assert_eq!(spend(&gate, by("1/min burst 2", ADDRESS, 1)), (true, 0));
}

#[test]
fn another_quota_finds_the_time_that_is_owed() {
    let (gate, _) = gate(POLICY);
    assert_eq!(spend(&gate, by("1/min burst 10", ADDRESS, 4)), (true, 6));
    assert_eq!(spend(&gate, by("1/min burst 5", ADDRESS, 0)), (true, 1));
    assert_eq!(spend(&gate, by("1/s burst 100", ADDRESS, 1)), (false, 0), "240 seconds are owed");
}

#[test]
fn what_is_given_back_is_by_the_quota_of_the_call() {
    let (gate, _) = gate(POLICY);
    assert_eq!(spend(&gate, by("1/min burst 10", ADDRESS, 4)), (true, 6));
    let give = Descriptor { gives_back: true, ..by("1/min burst 10", ADDRESS, 3) };
    assert_eq!(spend(&gate, give), (true, 9));
    assert_eq!(spend(&gate, give), (true, 10), "and never more than was spent");
}

#[test]
fn it_is_spent_together_with_limits_or_not_at_all() {
    let (gate, _) = gate(POLICY);
    let limited = Descriptor { hits: 4, ..Descriptor::new(OTHER) };
    assert!(decide(&gate, &[by("1/min burst 3", ADDRESS, 1), limited]).is_allowed());
    let denied = decide(&gate, &[by("1/min burst 3", ADDRESS, 1), limited]);
    let [call, limit] = denied.descriptors().collect::<Vec<_>>()[..] else { panic!() };
    assert!(!denied.is_allowed() && !call.is_denied() && limit.is_denied());
    assert_eq!(call.nearest().unwrap().decision().remaining(), 2);
    let one = Descriptor::new(OTHER);
    assert!(!decide(&gate, &[by("1/min burst 3", ADDRESS, 3), one]).is_allowed());
    assert_eq!(left(&gate, OTHER), 1);
    assert_eq!(spend(&gate, by("1/min burst 3", ADDRESS, 0)), (true, 2));
}

#[test]
fn it_counts_in_domains_that_the_policy_does_not_know() {
    let (gate, _) = gate_of(Policy::builder().call_quotas().build().unwrap());
    let check = |domain: &str| {
        let outcome = gate
            .try_decide(&Descriptors { domain, descriptors: &[by("1/min", ADDRESS, 1)] }, |it| {
                it.map(DescriptorOutcome::take)
            });
        let outcome = outcome.unwrap().unwrap();
        let kind = outcome.descriptors().next().unwrap().kind();
        assert_eq!((outcome.knows_domain(), kind), (false, DescriptorKind::Limited));
        outcome.is_allowed()
    };
    assert!(check("one") && !check("one"));
    assert!(check("other"), "domains are counted apart");
}

#[test]
fn one_that_never_refills_or_has_no_room_is_refused() {
    let (gate, _) = gate(POLICY);
    let refused = |gate: &TestGate, quota: &str| {
        let checked = gate.try_decide(
            &Descriptors { domain: "edge", descriptors: &[by(quota, ADDRESS, 1)] },
            |it| it.map(DescriptorOutcome::take),
        );
        let error = checked.unwrap().unwrap_err();
        assert!(error.is_unknown());
        error.to_string()
    };
    assert!(refused(&gate, "burst 10").contains("has to refill"));
    let (plain, _) = crate::common::gate("[[limit]]\nname = 'a'\nquota = '1/s'");
    assert!(refused(&plain, "1/s").contains("`call_quotas`"));
}
