//! The measure that the fleet is held to notices what is too much.

use crate::common::Bound;

const BOUND: Bound = Bound { burst: 3, interval: 10 };

fn excess(moments: &[u64]) -> u64 {
    let exactly: Vec<_> = moments.iter().map(|moment| (*moment, *moment)).collect();
    BOUND.excess(&exactly)
}

#[test]
fn a_burst_and_what_is_refilled_is_not_too_much() {
    assert_eq!(excess(&[]), 0);
    assert_eq!(excess(&[100, 100, 100, 110, 120, 130]), 0);
    assert_eq!(excess(&[100, 110, 120, 500, 500, 500]), 0);
}

#[test]
fn one_more_than_that_is_too_much_wherever_it_is() {
    assert_eq!(excess(&[100, 100, 100, 100]), 1);
    assert_eq!(excess(&[100, 100, 100, 109]), 1);
    assert_eq!(excess(&[100, 200, 200, 200, 209, 300]), 1);
    assert_eq!(excess(&[100, 200, 200, 200, 200, 200, 300]), 2);
}

#[test]
fn what_may_have_been_outside_of_an_interval_does_not_count_for_it() {
    assert_eq!(BOUND.excess(&[(100, 100), (100, 100), (100, 100), (100, 110)]), 0);
    assert_eq!(BOUND.excess(&[(100, 100), (100, 100), (100, 100), (100, 109)]), 1);
    assert_eq!(BOUND.excess(&[(90, 100), (100, 100), (100, 100), (100, 109)]), 0);
}
