//! Quotas that come with each call.

use spillgate::algorithm::TokenBucket;
use spillgate::{Limiter, ManualClock, check_all};

#[test]
fn a_quota_that_comes_with_a_call_is_spent_with_others_or_not_at_all() {
    let bucket = |text: &str| TokenBucket::new(&text.parse().unwrap()).unwrap();
    let clock = ManualClock::default();
    let by_call: Limiter<str, _> = Limiter::builder("1/s").clock(clock.clone()).build().unwrap();
    let limit: Limiter<str, _> =
        Limiter::builder("1/h burst 3").clock(clock.clone()).build().unwrap();
    let call = |own: &str, cost| {
        let spends = [by_call.spend_with("a", bucket(own), 2), limit.spend("a", cost)];
        check_all(spends).is_allowed()
    };
    assert!(call("1/min burst 5", 1));
    assert!(!call("1/min burst 5", 3), "denied by the limit");
    assert!(!call("1/min burst 3", 1), "denied by the quota of the call");
    assert_eq!(by_call.peek_with("a", bucket("1/min burst 5"), 0).remaining(), 3);
    assert_eq!(limit.peek("a").remaining(), 2);
}

#[test]
fn what_was_spent_by_the_quota_of_a_call_is_given_back_and_cancelled_by_it() {
    let bucket = TokenBucket::new(&"1/min burst 5".parse().unwrap()).unwrap();
    let clock = ManualClock::default();
    let limiter: Limiter<str, _> = Limiter::builder("1/s").clock(clock.clone()).build().unwrap();
    let left = || limiter.peek_with("a", bucket, 0).remaining();
    let spent = limiter.check_with("a", bucket, 4);
    assert_eq!((spent.remaining(), left()), (1, 1));
    limiter.refund_with("a", bucket, 1);
    assert_eq!(left(), 2);
    limiter.refund_with("a", bucket, 100);
    assert_eq!(left(), 5, "never more than was spent");
    limiter.debit_with("a", bucket, 7);
    assert_eq!(left(), 0);
    limiter.refund_with("a", bucket, 3);
    assert_eq!(left(), 1, "what was beyond the burst is owed first");
    let spent = limiter.check_with("a", bucket, 1);
    assert!(limiter.cancel(limiter.reservation("a", Some(bucket), spent.spent().unwrap())));
    assert_eq!(left(), 1);
}
