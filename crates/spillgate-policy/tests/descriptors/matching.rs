//! Which limits of a policy file descriptors meet, and what they are counted by.

use spillgate_policy::DescriptorKind::{Limited, Unknown};
use spillgate_policy::{Descriptor, DescriptorOutcome, Descriptors, Limit, Policy, PolicyBuilder};

use super::{call, left, met};
use crate::common::{gate, gate_of, get};

const POLICY: &str = r#"
[[limit]]
name = "requests"
quota = "1/h burst 5"

[[limit]]
name = "address"
match = { domain = "edge", descriptor = { remote_address = "*" } }
quota = "1/h burst 10"

[[limit]]
name = "one-address"
match = { domain = "edge", descriptor = { remote_address = "10.0.0.1" } }
quota = "1/h burst 3"

[[limit]]
name = "private"
match = { domain = "edge", descriptor = { remote_address = "10.*" } }
quota = "1/h burst 8"
per = "global"

[[limit]]
name = "path"
match = { domain = "edge", descriptor = { remote_address = "*", path = "/v1*" } }
quota = "1/h burst 7"

[[limit]]
name = "whole"
match = { domain = "all" }
quota = "1/h burst 2"
"#;

#[test]
fn a_descriptor_meets_every_limit_that_names_all_its_entries() {
    let (gate, _) = gate(POLICY);
    let names = |names: &[&str]| (Limited, names.iter().map(ToString::to_string).collect());
    assert_eq!(met(&gate, &[("remote_address", "192.0.2.7")]), names(&["address"]));
    assert_eq!(met(&gate, &[("remote_address", "10.9")]), names(&["address", "private"]));
    let all = names(&["address", "one-address", "private"]);
    assert_eq!(met(&gate, &[("remote_address", "10.0.0.1")]), all);
    let both = [("remote_address", "10.0.0.1"), ("path", "/v1/users")];
    assert_eq!(met(&gate, &both), names(&["path"]));
    let [address, path] = both;
    assert_eq!(met(&gate, &[path, address]), names(&["path"]), "in any order");
}

#[test]
fn a_star_stands_for_any_text_wherever_it_is_in_a_value() {
    let (gate, _) = gate(
        "[[limit]]\nname = 'photos'\nquota = '1/h burst 9'\n\
         match = { domain = 'edge', descriptor = { path = '/users/*/photos/*.jpg' } }\n",
    );
    let photos = (Limited, vec!["photos".to_owned()]);
    assert_eq!(met(&gate, &[("path", "/users/7/photos/1.jpg")]), photos);
    assert_eq!(met(&gate, &[("path", "/users//photos/.jpg")]), photos);
    for path in ["/users/7/photos/1.png", "/users/photos/1.jpg", "x/users/7/photos/1.jpg"] {
        assert_eq!(met(&gate, &[("path", path)]), (Unknown, vec![]), "{path}");
    }
    assert!(call(&gate, &[&[("path", "/users/7/photos/1.jpg")]]).is_allowed());
    assert_eq!(left(&gate, &[("path", "/users/7/photos/1.jpg")]), 8);
    assert_eq!(left(&gate, &[("path", "/users/7/photos/2.jpg")]), 9, "each value by itself");
}

#[test]
fn a_descriptor_that_has_other_entries_is_unknown() {
    let (gate, _) = gate(POLICY);
    let address = ("remote_address", "192.0.2.7");
    for entries in [
        &[][..],
        &[("remote_addres", "192.0.2.7")],
        &[address, address],
        &[address, ("path", "/v2")],
        &[address, ("path", "/v1"), ("method", "GET")],
        &[("", "")],
    ] {
        assert_eq!(met(&gate, entries), (Unknown, vec![]), "{entries:?}");
    }
    let outcome = gate.try_decide(
        &Descriptors { domain: "nowhere", descriptors: &[Descriptor::new(&[address])] },
        |it| it.map(DescriptorOutcome::take),
    );
    let outcome = outcome.unwrap().unwrap();
    assert!(outcome.is_allowed() && !outcome.knows_domain());
    assert_eq!(outcome.descriptors().next().unwrap().kind(), Unknown);
    assert!(call(&gate, &[&[address]]).knows_domain());
}

#[test]
fn what_a_descriptor_leaves_open_is_counted_apart() {
    let (gate, _) = gate(POLICY);
    for address in ["192.0.2.7", "192.0.2.8"] {
        assert!(call(&gate, &[&[("remote_address", address)]]).is_allowed());
        assert_eq!(left(&gate, &[("remote_address", address)]), 9);
    }
    // Together, since the limit says so.
    for address in ["10.1", "10.2"] {
        assert!(call(&gate, &[&[("remote_address", address)]]).is_allowed());
    }
    assert_eq!(left(&gate, &[("remote_address", "10.3")]), 6);
}

#[test]
fn pairs_are_compared_as_pairs() {
    let (gate, _) = gate(
        "[[limit]]\nname = 'a'\nquota = '1/h burst 9'\n\
         match = { domain = 'edge', descriptor = { a = '*', b = '*' } }\n",
    );
    assert!(call(&gate, &[&[("a", "x_y"), ("b", "z")]]).is_allowed());
    assert_eq!(left(&gate, &[("a", "x"), ("b", "y_z")]), 9);
    assert_eq!(left(&gate, &[("a", "x"), ("b", "_yz")]), 9);
    assert_eq!(left(&gate, &[("b", "z"), ("a", "x_y")]), 8, "in any order");
}

#[test]
fn a_domain_alone_is_for_every_descriptor_and_counts_it_whole() {
    let (gate, _) = gate(POLICY);
    let passes = |entries: &[(&str, &str)]| {
        let check = || {
            gate.try_decide(
                &Descriptors { domain: "all", descriptors: &[Descriptor::new(entries)] },
                |it| it.map(DescriptorOutcome::take),
            )
        };
        (0..3).filter(|_| check().unwrap().unwrap().is_allowed()).count()
    };
    for entries in [
        &[][..],
        &[("a", "1")],
        &[("a", "1"), ("a", "1")],
        &[("a", "1"), ("b", "2")],
        &[("b", "2"), ("a", "1")],
        &[("a", "1b"), ("", "2")],
    ] {
        assert_eq!(passes(entries), 2, "{entries:?}");
    }
}

#[test]
fn a_domain_can_be_counted_by_one_key_and_those_who_lack_it_together() {
    let (gate, _) = gate(
        "[[limit]]\nname = 'a'\nquota = '1/h burst 9'\nper = 'descriptor:user'\n\
         match = { domain = 'edge' }\n",
    );
    assert!(call(&gate, &[&[("user", "7"), ("path", "/")]]).is_allowed());
    assert_eq!(left(&gate, &[("user", "7"), ("path", "/other")]), 8);
    assert!(call(&gate, &[&[("path", "/")]]).is_allowed());
    assert!(call(&gate, &[&[("user", "7"), ("user", "8")]]).is_allowed());
    assert_eq!(left(&gate, &[]), 7, "twice is as good as never");
}

#[test]
fn limits_for_descriptors_meet_no_requests_and_those_for_requests_no_descriptors() {
    let (gate, _) = gate(POLICY);
    let outcome = get("10.0.0.1", "/v1").through(&gate);
    assert!(outcome.limits().map(|limit| limit.name()).eq(["requests"]));
    let explained = get("10.0.0.1", "/v1").explained(&gate);
    assert_eq!(explained.limits.len(), 1);
}

#[test]
fn an_override_is_for_one_value() {
    let limit = Limit::new("address", "1/h burst 10")
        .domain("edge")
        .descriptor("remote_address", "*")
        .cost(2)
        .override_for("descriptor:remote_address", "10.0.0.1", "1/h burst 40");
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    assert_eq!(left(&gate, &[("remote_address", "10.0.0.1")]), 40);
    let twice = [("remote_address", "10.0.0.2")];
    assert!(
        super::decide(&gate, &[Descriptor { hits: 3, ..Descriptor::new(&twice) }]).is_allowed()
    );
    assert_eq!(left(&gate, &twice), 4, "three hits of two each");
}

#[test]
fn thousands_of_limits_are_told_apart_by_their_values() {
    let limits = (0..3000).map(|number| {
        Limit::new(format!("l{number}"), "1/h burst 5")
            .domain("edge")
            .descriptor("tenant", format!("t{number}"))
            .descriptor("path", "*")
            .capacity(8)
    });
    let policy = limits.fold(Policy::builder(), PolicyBuilder::limit);
    let (gate, _) = gate_of(policy.build().unwrap());
    let meets = |tenant: &str| met(&gate, &[("path", "/"), ("tenant", tenant)]);
    assert_eq!(meets("t2999"), (Limited, vec!["l2999".to_owned()]));
    assert_eq!(meets("t3000"), (Unknown, vec![]));
}

#[test]
fn limits_that_count_one_thing_leave_the_room_for_callers_to_others() {
    let exact = (0..100).map(|number| {
        let limit = Limit::new(format!("exact-{number}"), "1/h").domain("edge");
        limit.descriptor("remote_address", format!("10.0.0.{number}"))
    });
    let global = (0..100).map(|number| Limit::new(format!("all-{number}"), "1/h").per(["global"]));
    let global = global.enumerate().map(|(number, limit)| limit.path(format!("/{number}")));
    let open = Limit::new("open", "1/h").domain("edge").descriptor("remote_address", "*");
    let limits = exact.chain(global).chain([open]);
    let policy = limits.fold(Policy::builder(), PolicyBuilder::limit);
    let (gate, _) = gate_of(policy.build().unwrap());
    let limits = gate.limits();
    let capacity = |name: &str| limits.iter().find(|limit| limit.name == name).unwrap().capacity;
    assert_eq!([capacity("open"), capacity("exact-7"), capacity("all-7")], [100_000, 1, 1]);
}
