//! Deciding about a request or a descriptor that meets one limit needs no memory.

use spillgate_policy::{
    AlgorithmKind, Descriptor, DescriptorOutcome, Descriptors, Domain, Gate, Limit, Node,
    NodeLimit, NodeQuota, Outcome, Policy, RequestView,
};

/// Expects a check to pass a thousand times without allocating.
fn allocates_nothing(check: impl Fn() -> bool) {
    // The first call makes what a thread keeps for itself.
    assert!(check());
    let measured = allocation_counter::measure(|| {
        for _ in 0..1000 {
            assert!(check());
        }
    });
    assert_eq!(measured.count_total, 0);
}

#[test]
fn a_tree_of_ten_thousand_nodes_takes_no_gigabytes() {
    let quota = "5/h".parse().unwrap();
    let counted = NodeQuota::Counted { quota, algorithm: AlgorithmKind::FixedWindow };
    let limit = Some(NodeLimit::new(counted));
    let node = |number: u32| {
        let below = Node { limit: limit.clone(), ..Node::new("path") };
        let value = Some(format!("t{number}"));
        Node { value, limit: limit.clone(), nodes: vec![below], ..Node::new("tenant") }
    };
    let domain = Domain { nodes: (0..5000).map(node).collect(), ..Domain::new("edge") };
    let mut gate = None;
    let measured = allocation_counter::measure(|| {
        gate = Some(Gate::new(Policy::builder().domain(domain).build().unwrap()).unwrap());
    });
    assert!(measured.bytes_current < 250 << 20, "{measured:?}");
}

#[test]
fn a_request_that_meets_one_limit_and_passes_allocates_nothing() {
    let limit = Limit::new("api", "1/h burst 1000000").path("/users/{id}");
    let gate = Gate::new(Policy::builder().limit(limit).build().unwrap()).unwrap();
    for peer in [[203, 0, 113, 7].into(), "2001:db8::7".parse().unwrap()] {
        let (parts, ()) = http::Request::get("/users/7").body(()).unwrap().into_parts();
        let request = RequestView::from_parts(&parts, Some(peer));
        allocates_nothing(|| {
            gate.try_decide(&request, |it| it.map(Outcome::take)).unwrap().unwrap().is_allowed()
        });
    }
}

#[test]
fn a_descriptor_that_meets_one_limit_and_passes_allocates_nothing() {
    let limit = Limit::new("address", "1/h burst 1000000").domain("edge");
    let limit = limit.descriptor("remote_address", "*").descriptor("path", "/v1*");
    let gate = Gate::new(Policy::builder().limit(limit).build().unwrap()).unwrap();
    let entries = [("remote_address", "203.0.113.7"), ("path", "/v1")];
    let descriptors = [Descriptor::new(&entries)];
    allocates_nothing(|| {
        gate.try_decide(&Descriptors { domain: "edge", descriptors: &descriptors }, |it| {
            it.map(DescriptorOutcome::take)
        })
        .unwrap()
        .unwrap()
        .is_allowed()
    });
}
