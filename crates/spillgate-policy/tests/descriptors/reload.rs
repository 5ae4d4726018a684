//! What was spent stays spent when the policy is replaced, or saved and restored.

use spillgate::{Clock, Seed};
use spillgate_policy::store::Memory;
use spillgate_policy::{Changes, Descriptor, Domain, Gate, Limit, Policy};

use super::{With, call, counted, left, node, quota};
use crate::common::gate_of;

fn policy(burst: u64) -> Policy {
    let quota = format!("{burst}/h");
    let limit = Limit::new("users", format!("1/h burst {burst}"));
    let limit = limit.domain("edge").descriptor("user", "*");
    let nodes = vec![
        node("path", "").with(counted(&quota)),
        node("path", "/v1").with(counted(&quota)),
        node("path", "/v2*").with(counted(&quota)),
    ];
    let domain = Domain { nodes, ..Domain::new("edge") };
    Policy::builder().limit(limit).domain(domain).build().unwrap()
}

const ALL: [(&str, &str); 4] = [("user", "7"), ("path", "/"), ("path", "/v1"), ("path", "/v2/x")];

#[test]
fn a_new_policy_keeps_what_was_spent_under_every_limit() {
    let (gate, _) = gate_of(policy(10));
    for entry in ALL {
        assert!(call(&gate, &[&[entry]]).is_allowed());
    }
    let by_call = [("user", "8")];
    let own = Descriptor { quota: Some(quota("1/h burst 3")), ..Descriptor::new(&by_call) };
    assert!(super::decide(&gate, &[own]).is_allowed());
    let changes = gate.replace(policy(20)).unwrap();
    let Changes { added, removed, restarted, changed, .. } = changes;
    assert!(added.is_empty() && removed.is_empty() && restarted.is_empty());
    assert!(
        changed.len() == 4 && changed.iter().all(|change| change.key == "quota"),
        "{changed:?}"
    );
    for entry in ALL {
        assert_eq!(left(&gate, &[entry]), 19, "{entry:?}");
    }
    let state = super::decide(&gate, &[own]);
    let state = state.descriptors().next().unwrap();
    assert_eq!(state.nearest().unwrap().decision().remaining(), 1);
}

#[test]
fn what_was_saved_is_put_back() {
    let (gate, clock) = gate_of(policy(10));
    for entry in ALL {
        assert!(call(&gate, &[&[entry]]).is_allowed());
    }
    let by_call = [("user", "8")];
    let own =
        Descriptor { hits: 3, quota: Some(quota("1/h burst 5")), ..Descriptor::new(&by_call) };
    assert!(super::decide(&gate, &[own]).is_allowed());
    let saved = gate.save();
    let seed: Seed = gate.store().seed();
    let store = Memory::new(clock.clone()).with_seed(seed);
    let restored = Gate::with_store(policy(10), store).unwrap();
    restored.restore(saved, clock.now()).unwrap();
    for entry in ALL {
        assert_eq!(left(&restored, &[entry]), 9, "{entry:?}");
    }
    let look = super::decide(&restored, &[Descriptor { hits: 0, ..own }]);
    let look = look.descriptors().next().unwrap();
    assert_eq!(look.nearest().unwrap().decision().remaining(), 2, "three hours are owed");
}
