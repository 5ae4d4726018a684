//! What is wrong with limits for descriptors, and how it is said.

use spillgate_policy::{Domain, Limit, Node, NodeLimit, NodeQuota, Policy};

use super::{With, counted, node};
use crate::common::problems;

/// What is said of a limit called `l` with these keys, one a line.
fn told(keys: &str) -> Vec<String> {
    problems(&format!("[[limit]]\nname = 'l'\nquota = '1/s'\n{keys}"))
}

#[test]
fn what_means_nothing_for_descriptors_is_refused_with_a_reason() {
    let edge = "match = { domain = 'edge', descriptor = { user = '*' } }";
    for (keys, expected) in [
        (
            "match = { domain = 'edge', path = '/' }".to_owned(),
            "line 4, column 35: limit \"l\": a limit with a `domain` is for descriptors, which have \
             no path; name an entry of the descriptor, or make two limits",
        ),
        (
            format!("{edge}\nper = 'ip'"),
            "line 5, column 7: limit \"l\", per: \"ip\" is not told of a descriptor; use one of \
             descriptor:KEY, descriptor, global",
        ),
        (
            format!("{edge}\nper = 'descriptor:usr'"),
            "line 5, column 7: limit \"l\", per: the descriptor has no entry \"usr\"; did you mean \
             \"user\"?",
        ),
        (
            format!("{edge}\nper = ['descriptor', 'descriptor:user']"),
            "line 5, column 8: limit \"l\", per: \"descriptor\" stands alone",
        ),
        (
            format!("{edge}\nsettle = {{ status = '4xx' }}"),
            "line 5, column 21: limit \"l\": it has no `settle`, since a proxy that asks about a \
             descriptor does not tell of the response",
        ),
        (
            format!("{edge}\ncost = {{ header = 'x-cost' }}"),
            "line 5, column 19: limit \"l\": the cost is a number, such as 5, since a descriptor \
             has no headers",
        ),
        (
            format!("{edge}\nalgorithm = 'leaky-shaper'"),
            "line 5, column 13: limit \"l\": a proxy that asks about a descriptor cannot be told \
             to wait; write \"leaky-bucket\" for \"leaky-shaper\"",
        ),
        (
            format!("{edge}\n[tier.gold]\ncallers = ['192.0.2.7']\nl = '9/s'"),
            "line 7, column 5: tier \"gold\": limit \"l\" is for descriptors, which are in no \
             tier; use an override, or a limit of its own",
        ),
        (
            "match = { descriptor = { user = '*' } }".to_owned(),
            "line 4, column 24: limit \"l\": a descriptor is looked for in a domain; add domain = \
             \"edge\" to `match`",
        ),
        (
            "match = { domain = 'edge', descriptor = {} }".to_owned(),
            "line 4, column 41: limit \"l\": the descriptor names 0 entries; name 1 to 64, or \
             leave it out for every descriptor of the domain",
        ),
        (
            "match = { domain = '' }".to_owned(),
            "line 4, column 20: limit \"l\": a domain is at least one character",
        ),
        (
            "per = 'descriptor:user'".to_owned(),
            "line 4, column 7: limit \"l\", per: \"descriptor:user\" needs a `match.domain`: \
             requests have no descriptors",
        ),
        (
            "match = { domain = 'edge' }\n[[limit.override]]\ndescriptor = 'a'\nquota = '1/s'"
                .to_owned(),
            "line 6, column 14: limit \"l\", override 1, descriptor: a whole descriptor cannot be \
             written as one text; count the limit per \"descriptor:KEY\"",
        ),
    ] {
        assert_eq!(told(&keys), [expected], "{keys}");
    }
}

#[test]
fn a_cost_that_asks_the_request_is_refused() {
    let limit = Limit::new("l", "1/s").domain("edge").cost_of(|_| 1);
    let error = Policy::builder().limit(limit).build().unwrap_err();
    assert!(error.to_string().contains("the cost is a number"), "{error}");
}

#[test]
fn the_name_of_the_built_in_limit_is_taken() {
    let told = problems("[[limit]]\nname = 'quota-of-call'\nquota = '1/s'");
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("choose another name"), "{told:?}");
}

#[test]
fn what_is_wrong_in_a_tree_is_told_by_the_name_of_its_node() {
    let never = NodeQuota::Counted {
        quota: "burst 5".parse().unwrap(),
        algorithm: spillgate::AlgorithmKind::FixedWindow,
    };
    let nodes = vec![
        node("a", "1").with(counted("1/s")),
        node("a", "1"),
        node("b", "x*"),
        node("b", "x*"),
        node("c", ""),
        node("c", ""),
        node("", "1"),
        node("d", "1").with(NodeLimit::new(never)),
    ];
    let domains = [
        Domain { nodes, ..Domain::new("edge") },
        Domain::new("edge"),
        Domain::new(""),
        Domain { nodes: vec![deep(65)], ..Domain::new("deep") },
    ];
    let builder =
        domains.into_iter().fold(Policy::builder(), spillgate_policy::PolicyBuilder::domain);
    let error = builder.build().unwrap_err();
    let told: Vec<_> = error.problems().iter().map(ToString::to_string).collect();
    let expected = [
        "edge/a=1 is there twice; write it once",
        "edge/b=x* is there twice; write it once",
        "edge/c is there twice; write it once",
        "edge/=1: an entry has no key; give it one",
        "edge/d=1: ",
        "there are two domains called \"edge\"; make them one",
        "a domain has no name; give it one, such as \"edge\"",
        "deep/k/k",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}");
    }
}

fn deep(levels: usize) -> Node {
    (1..levels).fold(Node::new("k"), |below, _| Node::new("k").above([below]))
}
