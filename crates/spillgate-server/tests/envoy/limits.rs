//! Hits, limits that come with a call, and limits of the policy file.

use tonic::Code;

use crate::envoy::client::{
    Client, OK, OVER_LIMIT, descriptor, giving_back, metric, start, with_hits, with_limit,
};

const POLICY: &str = "\
[[limit]]
name = 'per-address'
match = { domain = 'edge', descriptor = { address = '*' } }
quota = '10/h'

[[limit]]
name = 'login'
match = { domain = 'edge', descriptor = { address = '*', path = '/login' } }
quota = '1/s burst 3'
per = 'descriptor:address'

[[limit]]
name = 'everything'
match = { domain = 'edge' }
per = 'global'
quota = '1000/h'
algorithm = 'sliding-window'
";

/// One limit, and so no other that may be nearer to denying.
const ALONE: &str = "[[limit]]\nname = 'api'\nmatch = { domain = 'edge' }\nquota = '10/h'\n";

const UNKNOWN: i32 = 0;
const HOUR: i32 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn descriptors_meet_the_limits_of_the_policy_file() {
    let (_home, server) = start(POLICY, &[], &[]);
    let mut client = Client::to(&server).await;
    // In any order.
    let login = descriptor(&[("path", "/login"), ("address", "1")]);
    let status = client.status("edge", &login).await;
    let limit = status.current_limit.unwrap();
    // Three are refilled in three seconds, which is no unit.
    assert_eq!((&*limit.name, limit.requests_per_unit, limit.unit), ("login", 3, UNKNOWN));
    assert_eq!(status.limit_remaining, 2);
    let status = client.status("edge", &descriptor(&[("address", "1")])).await;
    assert_eq!(status.limit_remaining, 9);
    assert_eq!(status.current_limit.unwrap().unit, HOUR);
    // One limit counts them all.
    let status = client.status("edge", &descriptor(&[("anything", "else")])).await;
    assert_eq!(status.current_limit.unwrap().name, "everything");
    assert_eq!(status.limit_remaining, 997);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_are_those_of_the_call_or_of_a_descriptor() {
    let (_home, server) = start(ALONE, &[], &[]);
    let mut client = Client::to(&server).await;
    let one = descriptor(&[("address", "1")]);
    let left = |answer: spillgate_server::protocol::grpc::messages::RateLimitResponse| {
        answer.statuses[0].limit_remaining
    };
    let answer = client.try_ask("edge", 3, std::slice::from_ref(&one)).await.unwrap();
    assert_eq!(left(answer), 7);
    // A descriptor's own go before, and none of its own only looks.
    let answer = client.try_ask("edge", 3, &[with_hits(&one, 2)]).await.unwrap();
    assert_eq!(left(answer), 5);
    for _ in 0..3 {
        let answer = client.try_ask("edge", 3, &[with_hits(&one, 0)]).await.unwrap();
        assert_eq!(left(answer), 5);
    }
    let status = client.status("edge", &giving_back(&one, 4)).await;
    assert_eq!((status.code, status.limit_remaining), (OK, 9));
    let status = client.status("edge", &giving_back(&one, 100)).await;
    assert_eq!((status.code, status.limit_remaining), (OK, 10), "no more than was there");
    let status = client.status("edge", &with_hits(&one, 11)).await;
    assert_eq!((status.code, status.limit_remaining), (OVER_LIMIT, 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_comes_with_a_descriptor_takes_the_place_of_all_others() {
    let (_home, server) = start(POLICY, &[], &[]);
    let mut client = Client::to(&server).await;
    let one = descriptor(&[("address", "1")]);
    let given = with_limit(&one, 2, HOUR);
    for left in [1, 0] {
        let status = client.status("edge", &given).await;
        let limit = status.current_limit.unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit), (2, HOUR));
        assert_eq!((status.code, status.limit_remaining), (OK, left));
    }
    assert_eq!(client.status("edge", &given).await.code, OVER_LIMIT);
    assert_eq!(client.status("edge", &one).await.limit_remaining, 9, "the policy's is its own");
    // Also where nothing is known of the domain.
    assert_eq!(client.status("other", &with_limit(&one, 1, HOUR)).await.code, OK);
    assert_eq!(client.status("other", &with_limit(&one, 1, HOUR)).await.code, OVER_LIMIT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_nothing_that_comes_with_a_descriptor_denies_and_spends_nothing() {
    let (_home, server) = start(POLICY, &[], &[]);
    let mut client = Client::to(&server).await;
    let (one, two) = (descriptor(&[("address", "1")]), descriptor(&[("address", "2")]));
    let answer = client.ask("edge", &[two.clone(), with_limit(&one, 0, HOUR)]).await;
    assert_eq!(answer.overall_code, OVER_LIMIT);
    let codes: Vec<_> = answer.statuses.iter().map(|status| status.code).collect();
    assert_eq!(codes, [OK, OVER_LIMIT]);
    let limit = answer.statuses[1].current_limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit), (0, HOUR));
    assert!(answer.response_headers_to_add.is_empty(), "{answer:?}");
    assert_eq!(client.status("edge", &two).await.limit_remaining, 9);
    // It is counted as what it is, and so is what was not spent beside it.
    let requests = |limit: &str, outcome: &str| {
        let labels = format!("limit=\"{limit}\",outcome=\"{outcome}\"");
        metric(&server, &format!("spillgate_requests_total{{{labels}}}"))
    };
    assert_eq!(requests("quota-of-call", "denied"), 1.0);
    assert_eq!(requests("per-address", "allowed"), 1.0);
    // Whoever only looks, or gives back, is not denied, and the policy's limits are left alone.
    for looks in [with_hits(&two, 0), giving_back(&two, 1)] {
        let status = client.status("edge", &with_limit(&looks, 0, HOUR)).await;
        assert_eq!((status.code, status.current_limit.unwrap().requests_per_unit), (OK, 0));
    }
    assert_eq!(client.status("edge", &with_hits(&two, 0)).await.limit_remaining, 9);
    let error = client.try_ask("edge", 0, &[with_limit(&one, 5, UNKNOWN)]).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}
