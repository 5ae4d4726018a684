//! A store that cannot answer is an error, so that whoever asks decides what that means.

use tonic::Code;

use crate::common::redis::Redis;
use crate::common::server::until;
use crate::envoy::client::{
    Client, OK, OVER_LIMIT, descriptor, metric, start, with_hits, with_limit,
};

const POLICY: &str = "\
[[limit]]
name = 'strict'
match = { domain = 'edge', descriptor = { strict = '*' } }
quota = '3/h'
outage = 'closed'

[[limit]]
name = 'open'
match = { domain = 'edge', descriptor = { open = '*' } }
quota = '3/h'
outage = 'open'
";

const FILE: &str = "domain: files\ndescriptors:\n\
    - {key: tree, rate_limit: {unit: hour, requests_per_unit: 2}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_share_what_descriptors_spend_and_a_closed_limit_is_unavailable_in_an_outage() {
    let mut redis = Redis::start();
    let url = redis.url();
    let begin = || start(POLICY, &[("files.yaml", FILE)], &["--store", &url]);
    let [(_one_home, one), (_other_home, other)] = [begin(), begin()];
    let mut clients = [Client::to(&one).await, Client::to(&other).await];
    let strict = descriptor(&[("strict", "x")]);
    let (tree, open) = (descriptor(&[("tree", "x")]), descriptor(&[("open", "x")]));
    let mut codes = Vec::new();
    for turn in 0..4 {
        codes.push(clients[turn % 2].status("edge", &strict).await.code);
    }
    assert_eq!(codes, [OK, OK, OK, OVER_LIMIT]);
    for (turn, code) in [OK, OK, OVER_LIMIT].into_iter().enumerate() {
        assert_eq!(clients[turn % 2].status("files", &tree).await.code, code);
    }
    let given = with_limit(&tree, 1, 3);
    assert_eq!(clients[0].status("anywhere", &given).await.code, OK);
    assert_eq!(clients[1].status("anywhere", &given).await.code, OVER_LIMIT);

    redis.kill();
    until("that it is missed", || metric(&one, "spillgate_store_up") == 0.0);
    let fresh = descriptor(&[("strict", "y")]);
    let error = clients[0].try_ask("edge", 0, &[open.clone(), fresh]).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert_eq!(error.message(), "the shared store cannot be reached");
    assert_eq!(metric(&one, "spillgate_grpc_calls_total{code=\"UNAVAILABLE\"}"), 1.0);
    for _ in 0..5 {
        assert_eq!(clients[0].status("edge", &open).await.code, OK);
    }
}

const QUOTAS: &str = "domain: edge\ndescriptors:\n\
    - {key: small, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}\n\
    - {key: large, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 3}}\n\
    - {key: plain, rate_limit: {unit: year, requests_per_unit: 9}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_share_what_exceeds_limits_in_quota_mode() {
    let redis = Redis::start();
    let url = redis.url();
    let begin = || start("", &[("edge.yaml", QUOTAS)], &["--store", &url]);
    let [(_one_home, one), (_other_home, other)] = [begin(), begin()];
    let mut clients = [Client::to(&one).await, Client::to(&other).await];
    let call = ["small", "large", "plain"].map(|key| descriptor(&[(key, "x")]));
    let (small, large) = (&call[0], &call[1]);
    let expected = [
        (OK, [OK, OK, OK]),
        (OK, [OVER_LIMIT, OK, OK]),
        (OK, [OVER_LIMIT, OK, OK]),
        (OVER_LIMIT, [OVER_LIMIT, OVER_LIMIT, OK]),
        (OVER_LIMIT, [OVER_LIMIT, OVER_LIMIT, OK]),
        (OVER_LIMIT, [OVER_LIMIT, OVER_LIMIT, OK]),
    ];
    for (turn, (code, codes)) in expected.into_iter().enumerate() {
        let answer = clients[turn % 2].ask("edge", &call).await;
        let output: Vec<_> = answer.statuses.iter().map(|status| status.code).collect();
        assert_eq!((answer.overall_code, output.as_slice()), (code, &codes[..]), "{turn}");
    }
    for client in &mut clients {
        let left = client.status("edge", &with_hits(&call[2], 0)).await.limit_remaining;
        assert_eq!(left, 6, "what was denied has spent nothing");
        for key in [small, large] {
            assert_eq!(client.status("edge", &with_hits(key, 0)).await.code, OVER_LIMIT);
        }
    }
}
