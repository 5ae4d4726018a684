//! A server that ends in order gives back what it has leased.

use super::{metric, pair};
use crate::common::redis::Redis;
use crate::common::server::until;
use crate::operate::clients::Http;

const LEASED: &str = "[[limit]]\nname = 'api'\nquota = '1000/h burst 1000'\nper = 'ip'\n\
    sharing = 'leased'\n";

#[test]
fn what_was_leased_and_not_spent_is_given_back() {
    let redis = Redis::start();
    let (_home, [one, other]) = pair(&redis, LEASED);
    until("that each knows of the other", || {
        [&one, &other].iter().all(|server| metric(server, "spillgate_store_nodes") == 2.0)
    });
    let mut client = Http::connect(one.http).unwrap();
    for _ in 0..200 {
        assert!(client.check("api", "203.0.113.7").unwrap());
    }
    assert!(metric(&one, "spillgate_store_decisions_total{source=\"lease\"}") > 0.0);
    drop(client);
    one.stop();
    // All that is left of the burst, and the tokens that came meanwhile, which are few.
    let mut client = Http::connect(other.http).unwrap();
    let admitted = (0..1200).filter(|_| client.check("api", "203.0.113.7").unwrap()).count();
    assert!((800..=820).contains(&admitted), "{admitted}");
}
