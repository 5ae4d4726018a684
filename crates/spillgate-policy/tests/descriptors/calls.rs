//! All descriptors of a call are spent together, or none is.

use std::time::Duration;

use spillgate_policy::{Descriptor, Descriptors};

use super::{Entries, call, decide, left};
use crate::common::{TestGate, gate};

const POLICY: &str = r#"
[[limit]]
name = "address"
match = { domain = "edge", descriptor = { remote_address = "*" } }
quota = "1/min burst 5"

[[limit]]
name = "path"
match = { domain = "edge", descriptor = { path = "*" } }
quota = "1/min burst 3"

[[limit]]
name = "watched"
match = { domain = "edge", descriptor = { path = "*" } }
quota = "1/min burst 2"
mode = "shadow"

[[limit]]
name = "in-all"
match = { domain = "edge", descriptor = { path = "*" } }
per = "global"
quota = "1/min burst 4"
"#;

const ADDRESS: Entries<'_> = &[("remote_address", "192.0.2.7")];
const PATH: Entries<'_> = &[("path", "/")];

fn hits(entries: Entries<'_>, hits: u64) -> Descriptor<'_> {
    Descriptor { hits, ..Descriptor::new(entries) }
}

fn gives_back(entries: Entries<'_>, amount: u64) -> Descriptor<'_> {
    Descriptor { gives_back: true, ..hits(entries, amount) }
}

/// What each limit of a descriptor has left, by name.
fn all_left(gate: &TestGate, entries: Entries<'_>) -> Vec<(String, u64)> {
    let outcome = decide(gate, &[hits(entries, 0)]);
    let state = outcome.descriptors().next().unwrap();
    let left = state.limits().map(|limit| (limit.name().to_owned(), limit.decision().remaining()));
    let mut left: Vec<_> = left.collect();
    left.sort_unstable();
    left
}

#[test]
fn a_call_that_is_denied_spends_nothing_and_says_what_is_left() {
    let (gate, _) = gate(POLICY);
    for _ in 0..3 {
        assert!(call(&gate, &[ADDRESS, PATH]).is_allowed());
    }
    let denied = call(&gate, &[ADDRESS, PATH]);
    assert!(!denied.is_allowed());
    let [address, path] = denied.descriptors().collect::<Vec<_>>()[..] else { panic!() };
    assert!(!address.is_denied() && path.is_denied());
    assert_eq!(address.nearest().unwrap().decision().remaining(), 2);
    assert_eq!(path.nearest().unwrap().name(), "path");
    assert!(path.limits().all(|limit| limit.name() != "watched"), "in shadow, so undecided");
    let retry = path.nearest().unwrap().decision().retry_after();
    assert_eq!(retry, Some(Duration::from_secs(60)));
    assert_eq!(denied.outcome().denied_by(), Some("path"));
    assert_eq!(left(&gate, ADDRESS), 2);
    let left = [("in-all", 1), ("path", 0), ("watched", 0)];
    assert_eq!(all_left(&gate, PATH), left.map(|(name, left)| (name.to_owned(), left)));
}

#[test]
fn states_are_in_the_order_of_the_descriptors() {
    let (gate, _) = gate(POLICY);
    let other = [("other", "1")];
    let outcome = call(&gate, &[PATH, &other, ADDRESS, PATH]);
    let names: Vec<Vec<_>> = outcome
        .descriptors()
        .map(|state| state.limits().map(|limit| limit.name().to_owned()).collect())
        .collect();
    let path = ["path", "in-all", "watched"].map(str::to_owned).to_vec();
    assert_eq!(names, [path.clone(), vec![], vec!["address".to_owned()], path]);
}

#[test]
fn descriptors_that_share_a_count_are_counted_one_after_the_other() {
    let (gate, _) = gate(POLICY);
    let outcome = call(&gate, &[PATH, PATH]);
    let left: Vec<_> = outcome
        .descriptors()
        .map(|state| state.nearest().unwrap().decision().remaining())
        .collect();
    assert_eq!(left, [2, 1]);
    assert!(!call(&gate, &[PATH, PATH]).is_allowed());
    assert_eq!(super::left(&gate, PATH), 1, "the first was taken back");
}

#[test]
fn no_hits_only_look_and_many_count_at_once() {
    let (gate, _) = gate(POLICY);
    assert!(decide(&gate, &[hits(ADDRESS, 5)]).is_allowed());
    assert!(decide(&gate, &[hits(ADDRESS, 0)]).is_allowed());
    assert!(!decide(&gate, &[hits(ADDRESS, 1)]).is_allowed());
    let never = decide(&gate, &[hits(ADDRESS, u64::MAX)]);
    let never = never.descriptors().next().unwrap();
    assert_eq!(never.nearest().unwrap().decision().retry_after(), None);
}

#[test]
fn what_is_given_back_is_no_more_than_was_spent_and_denies_nothing() {
    let (gate, _) = gate(POLICY);
    assert!(decide(&gate, &[hits(ADDRESS, 4)]).is_allowed());
    let outcome = decide(&gate, &[gives_back(ADDRESS, 3)]);
    let state = outcome.descriptors().next().unwrap();
    assert!(outcome.is_allowed());
    assert_eq!(state.nearest().unwrap().decision().remaining(), 4);
    assert!(decide(&gate, &[gives_back(ADDRESS, u64::MAX)]).is_allowed());
    assert_eq!(left(&gate, ADDRESS), 5);
}

#[test]
fn a_denied_call_gives_nothing_back() {
    let (gate, _) = gate(POLICY);
    assert!(decide(&gate, &[hits(ADDRESS, 5), hits(PATH, 3)]).is_allowed());
    let denied = decide(&gate, &[gives_back(ADDRESS, 2), hits(PATH, 1)]);
    assert!(!denied.is_allowed());
    let [address, path] = denied.descriptors().collect::<Vec<_>>()[..] else { panic!() };
    assert!(!address.is_denied() && path.is_denied());
    assert_eq!(address.nearest().unwrap().decision().remaining(), 0);
    assert_eq!(left(&gate, ADDRESS), 0);
}

#[tokio::test]
async fn waiting_decides_as_at_once() {
    let (gate, _) = gate(POLICY);
    let descriptors = [hits(ADDRESS, 4), gives_back(PATH, 1)];
    assert!(
        gate.decide(&Descriptors { domain: "edge", descriptors: &descriptors })
            .await
            .unwrap()
            .is_allowed()
    );
    assert!(
        !gate
            .decide(&Descriptors { domain: "edge", descriptors: &descriptors })
            .await
            .unwrap()
            .is_allowed()
    );
    assert!(
        gate.decide(&Descriptors { domain: "edge", descriptors: &[] }).await.unwrap().is_allowed()
    );
}
