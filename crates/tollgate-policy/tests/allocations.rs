//! Deciding about a request that meets one limit needs no memory.

use tollgate_policy::{Gate, Limit, Policy, Request};

#[test]
fn a_request_that_meets_one_limit_and_passes_allocates_nothing() {
    let limit = Limit::new("api", "1/h burst 1000000").path("/users/{id}");
    let gate = Gate::new(Policy::builder().limit(limit).build().unwrap()).unwrap();
    for peer in [[203, 0, 113, 7].into(), "2001:db8::7".parse().unwrap()] {
        let (parts, ()) = http::Request::get("/users/7").body(()).unwrap().into_parts();
        let request = Request::from_parts(&parts, Some(peer));
        let check = || gate.check_now(&request).unwrap().unwrap().is_allowed();
        // The first call makes what a thread keeps for itself.
        assert!(check());
        let measured = allocation_counter::measure(|| {
            for _ in 0..1000 {
                assert!(check());
            }
        });
        assert_eq!(measured.count_total, 0, "{peer}");
    }
}
