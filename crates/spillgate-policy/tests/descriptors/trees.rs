//! Trees of limits, as files of envoyproxy/ratelimit write them.

use std::time::Duration;

use spillgate_policy::DescriptorKind::{Known, Limited, Replaced, Unknown};
use spillgate_policy::{
    Descriptor, DescriptorKind, Domain, Limit, Node, NodeLimit, NodeMode, NodeQuota, Policy,
};

use super::{With, call, counted, decide, in_mode, left, met, named, node};
use crate::common::{TestGate, gate_of};

fn tree(nodes: impl IntoIterator<Item = Node>) -> TestGate {
    let domain = Domain { nodes: nodes.into_iter().collect(), ..Domain::new("edge") };
    gate_of(Policy::builder().domain(domain).build().unwrap()).0
}

fn meets(gate: &TestGate, entries: &[(&str, &str)], limit: &str) {
    assert_eq!(met(gate, entries), (Limited, vec![limit.to_owned()]), "{entries:?}");
}

#[test]
fn a_value_goes_before_wildcards_in_their_order_and_those_before_the_key_alone() {
    let gate = tree([
        node("path", "").with(counted("1/h")),
        node("path", "/v1/a*").with(counted("1/h")),
        node("path", "/v1*").with(counted("1/h")),
        node("path", "/v1/ab*").with(counted("1/h")),
        node("path", "/v1/abc").with(counted("1/h")),
    ]);
    meets(&gate, &[("path", "/v1/abc")], "edge/path=%2Fv1%2Fabc");
    meets(&gate, &[("path", "/v1/abcd")], "edge/path=%2Fv1%2Fa*");
    meets(&gate, &[("path", "/v1/b")], "edge/path=%2Fv1*");
    meets(&gate, &[("path", "/v2")], "edge/path");
    meets(&gate, &[("path", "")], "edge/path");
    assert_eq!(met(&gate, &[("host", "/v1")]), (Unknown, vec![]));
}

#[test]
fn a_wildcard_may_have_its_stars_anywhere() {
    let gate = tree([
        node("path", "/v1/*/log").with(counted("1/h")),
        node("path", "*.php").with(counted("1/h")),
        node("path", "/v1/*/*/log").with(counted("1/h")),
        node("path", "/*/item/*").with(counted("1/h")),
    ]);
    meets(&gate, &[("path", "/v1/a/log")], "edge/path=%2Fv1%2F*%2Flog");
    meets(&gate, &[("path", "/v1/a/b/log")], "edge/path=%2Fv1%2F*%2Flog");
    meets(&gate, &[("path", "/v1//log")], "edge/path=%2Fv1%2F*%2Flog");
    meets(&gate, &[("path", "/index.php")], "edge/path=*.php");
    meets(&gate, &[("path", "/shop/item/7")], "edge/path=%2F*%2Fitem%2F*");
    // As it is written, it is not a wildcard that another may come before.
    meets(&gate, &[("path", "/v1/*/*/log")], "edge/path=%2Fv1%2F*%2F*%2Flog");
    for unknown in ["/v1/log", "/v1/a/logs", "v1/a/log", "/index.phps", "/item/7", ""] {
        assert_eq!(met(&gate, &[("path", unknown)]), (Unknown, vec![]), "{unknown}");
    }
}

#[test]
fn a_descriptor_never_turns_back_and_must_end_at_its_node() {
    let gate = tree([
        node("tenant", "a").above([node("path", "/x").with(counted("1/h"))]),
        node("tenant", "").with(counted("1/h")).above([node("path", "").with(counted("1/h"))]),
    ]);
    meets(&gate, &[("tenant", "a"), ("path", "/x")], "edge/tenant=a/path=%2Fx");
    // The key alone would have a node for it, but the value comes first.
    assert_eq!(met(&gate, &[("tenant", "a"), ("path", "/y")]), (Unknown, vec![]));
    assert_eq!(met(&gate, &[("tenant", "a")]), (Known, vec![]), "a node without a limit");
    meets(&gate, &[("tenant", "b")], "edge/tenant");
    meets(&gate, &[("tenant", "b"), ("path", "/y")], "edge/tenant/path");
    assert_eq!(met(&gate, &[("path", "/y"), ("tenant", "b")]), (Unknown, vec![]), "in order");
    let deeper = [("tenant", "b"), ("path", "/y"), ("path", "/y")];
    assert_eq!(met(&gate, &deeper), (Unknown, vec![]));
    assert_eq!(met(&gate, &[]), (Unknown, vec![]));
}

#[test]
fn pairs_are_not_joined_into_one_text() {
    let gate = tree([node("a", "b_c").with(counted("1/h")), node("a_b", "c").with(counted("1/h"))]);
    meets(&gate, &[("a", "b_c")], "edge/a=b_c");
    meets(&gate, &[("a_b", "c")], "edge/a_b=c");
    assert_eq!(met(&gate, &[("a_b_c", "")]), (Unknown, vec![]));
}

#[test]
fn values_that_a_node_leaves_open_are_counted_apart_unless_it_shares_them() {
    for (apart, shared) in [("/a*", "/s*"), ("/*a", "/*s"), ("/a*a", "/s*s"), ("/a*a*", "/s*s*")] {
        let value = |pattern: &str, star: &str| pattern.replace('*', star);
        let shares = Node { shares_values: true, ..node("path", shared) };
        let gate = tree([node("tenant", "")
            .above([node("path", apart).with(counted("5/h")), shares.with(counted("5/h"))])]);
        let left = |tenant, path: String| left(&gate, &[("tenant", tenant), ("path", &path)]);
        for pattern in [apart, shared] {
            let path = value(pattern, "1");
            assert!(call(&gate, &[&[("tenant", "t"), ("path", &path)]]).is_allowed());
            assert_eq!(left("t", path.clone()), 4, "{pattern}");
            assert_eq!(left("u", path), 5, "{pattern}");
        }
        assert_eq!(left("t", value(apart, "2")), 5, "{apart}");
        assert_eq!(left("t", value(shared, "2")), 4, "{shared}");
        assert_eq!(left("t", shared.to_owned()), 4, "{shared}");
    }
}

#[test]
fn limits_of_the_policy_count_beside_the_tree() {
    let domain =
        Domain { nodes: vec![node("user", "").with(counted("5/h"))], ..Domain::new("edge") };
    let limit = Limit::new("two", "1/h burst 2").domain("edge").descriptor("user", "*");
    let (gate, _) = gate_of(Policy::builder().limit(limit).domain(domain).build().unwrap());
    let names = vec!["edge/user".to_owned(), "two".to_owned()];
    assert_eq!(met(&gate, &[("user", "7")]), (Limited, names));
    let passes = (0..4).filter(|_| call(&gate, &[&[("user", "7")]]).is_allowed()).count();
    assert_eq!(passes, 2);
    assert_eq!(gate.policy().domains().collect::<Vec<_>>(), ["edge"]);
}

#[test]
fn what_is_unlimited_passes_and_what_is_closed_never_does() {
    let closed = NodeQuota::Closed { period: Duration::from_secs(60) };
    let gate = tree([
        node("free", "").with(named("gift", NodeLimit::new(NodeQuota::Unlimited))),
        node("shut", "").with(NodeLimit::new(closed)),
        node("maybe", "").with(in_mode(NodeMode::Shadow, NodeLimit::new(closed))),
    ]);
    let free = call(&gate, &[&[("free", "1")]]);
    let state = free.descriptors().next().unwrap();
    assert!(free.is_allowed());
    assert_eq!((state.kind(), state.name()), (DescriptorKind::Unlimited, Some("gift")));

    let shut = call(&gate, &[&[("free", "1")], &[("shut", "1")]]);
    assert!(!shut.is_allowed());
    let states: Vec<_> = shut.descriptors().collect();
    assert!(!states[0].is_denied() && states[1].is_denied());
    let limit = states[1].nearest().unwrap();
    assert!(limit.is_closed());
    assert_eq!(limit.decision().retry_after(), None);
    assert_eq!(limit.decision().window(), Some(Duration::from_secs(60)));

    let maybe = call(&gate, &[&[("maybe", "1")]]);
    assert!(maybe.is_allowed());
    assert_eq!(maybe.descriptors().next().unwrap().exceeded().count(), 1);

    let look = [("shut", "1")];
    assert!(decide(&gate, &[Descriptor { hits: 0, ..Descriptor::new(&look) }]).is_allowed());
    let give = Descriptor { gives_back: true, ..Descriptor::new(&look) };
    assert!(decide(&gate, &[give]).is_allowed());
}

#[test]
fn limits_in_shadow_count_and_tell_that_they_are_exceeded() {
    let gate = tree([node("shadow", "").with(in_mode(NodeMode::Shadow, counted("1/h")))]);
    let entries = [("shadow", "1")];
    let first = call(&gate, &[&entries]);
    let state = first.descriptors().next().unwrap();
    assert!(first.is_allowed() && state.exceeded().next().is_none());
    assert!(state.nearest().is_none(), "none that enforces");
    let second = call(&gate, &[&entries]);
    let state = second.descriptors().next().unwrap();
    assert!(second.is_allowed() && !state.is_denied() && !state.exceeds_quota());
    assert_eq!(state.exceeded().count(), 1);
}

#[test]
fn a_limit_that_replaces_others_keeps_them_from_counting_in_its_call() {
    let replaces = vec!["general".to_owned(), "nothing".to_owned()];
    let special = NodeLimit { replaces, ..named("special", counted("9/h")) };
    let gate = tree([
        node("user", "").with(named("general", counted("1/h"))),
        node("vip", "").with(special),
    ]);
    let (user, vip) = ([("user", "7")], [("vip", "7")]);
    for spent in 1..4 {
        let outcome = call(&gate, &[&user, &vip]);
        let state = outcome.descriptors().next().unwrap();
        assert!(outcome.is_allowed());
        assert_eq!((state.kind(), state.name()), (Replaced, Some("general")));
        assert_eq!(state.limits().count(), 0);
        assert_eq!(left(&gate, &vip), 9 - spent);
    }
    assert_eq!(left(&gate, &user), 1, "nothing was counted");
    let outcome = call(&gate, &[&user]);
    let limit = outcome.descriptors().next().unwrap().nearest().unwrap();
    assert_eq!((limit.name(), limit.shown_name()), ("edge/user", Some("general")));
}

#[test]
fn nodes_are_found_among_ten_thousand_and_have_room_for_what_they_count() {
    let nodes = (0..10_000).map(|number| {
        let value = format!("t{number}");
        let exact = node("tenant", &value).with(counted("5/h"));
        if number % 10 == 0 { exact.above([node("path", "").with(counted("5/h"))]) } else { exact }
    });
    let gate = tree(nodes);
    meets(&gate, &[("tenant", "t9999")], "edge/tenant=t9999");
    meets(&gate, &[("tenant", "t9990"), ("path", "/")], "edge/tenant=t9990/path");
    let limits = gate.limits();
    let capacity = |name: &str| limits.iter().find(|limit| limit.name == name).unwrap().capacity;
    assert_eq!(capacity("edge/tenant=t9999"), 1);
    // A million values, shared by the thousand rules that count some apart.
    assert_eq!(capacity("edge/tenant=t9990/path"), 1000);
}
